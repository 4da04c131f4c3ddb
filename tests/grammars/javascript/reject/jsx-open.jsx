a = <div>b
