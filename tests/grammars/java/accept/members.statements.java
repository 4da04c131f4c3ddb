    @Override
    public void f() { }

    private int x = 1;

    static class B { }
