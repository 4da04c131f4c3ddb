const a = <div className="x" data-b='c' d={e} {...f} g>
  text &amp; it's {h /* i */} {/* nothing */} {...j}
  <br/><Foo.Bar x:y="z" />
  <></>
  {k ? <b>l</b> : <>m</>}
  {n.map(o => <li key={o}>{o}</li>)}
</div>
const p = () => (<p
  q={() => { r() }}
>s</p>)
a < b
c(<d/>, x < y)
