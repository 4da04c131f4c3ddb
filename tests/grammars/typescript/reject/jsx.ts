a = <div>b</div>
