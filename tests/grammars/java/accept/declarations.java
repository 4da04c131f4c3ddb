@Generated("x") @interface Marker {
    int value() default 3;
    String[] names() default {"a", "b",};
    Class<? extends Number> kind() default Integer.class;
    int LIMIT = 1 << 4, OTHER = 2;
    enum Level { LOW, HIGH }
    @SuppressWarnings(value = {"a", "b"}) @Deprecated String text();
}

public sealed abstract class Shapes<T extends Comparable<? super T> & java.io.Serializable, @A U>
        extends @B Base<Map<String, List<T>>> implements Runnable, Closeable permits Circle, Square {
    private static final int[][] grid[] = {{1, 2}, {}, {3,}}, other;
    static { register(); }
    static{ register(); }
    { count = 1; }
    ;
    protected <K, V> Shapes(final Map.Entry<K, V> entry, int... rest) throws IOException, @C E { super(entry); }
    <T> Shapes() { this(null); }
    native void call();
    abstract java.util.@A List<@A ? extends @A(1) Number> get(@A @B final String @A [] name, Object @A ... more)[];
    void receiver(Shapes<T, U> this, int x) {}
    synchronized strictfp transient volatile default int strange;
    record Point<T>(@A int x, T... ys) implements Comparable<Point<T>> {
        static int zero = 0;
        Point {
            if (x < 0) throw new IllegalArgumentException();
        }
        public Point(int x) { this(x, null); }
    }
    private non-sealed class Inner extends Shapes.Deep<A>.Deeper {}
    sealed interface Call<R> extends Callable<R>, Foo permits A, B {
        int ONE = 1;
        R call() throws Exception;
        default void run() { call(); }
        private static <X> X of(X x) { return x; }
    }
    enum Op implements IntBinaryOperator {
        @A PLUS("+") { public int apply(int a, int b) { return a + b; } },
        MINUS("-"),
        ;
        private final String sign;
        Op(String sign) { this.sign = sign; }
    }
    enum Empty { }
    enum Alone { ; void f() {} }
    int record, sealed, permits, yield, var, when;
    void record() {}
    public static<T> @A T of(T x) { return x; }
    List<String>[] bare = new List[0];
    byte[]data;
};
