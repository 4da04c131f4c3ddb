@A( class B {}
