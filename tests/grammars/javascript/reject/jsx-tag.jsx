a = <div b=c></div>
