interface A ( )
