package a.b.c;

import java.util.*;
import static java.lang.Math.abs;
import static java.lang.Math.*;

class Statements {
    void run(int... values) throws Exception {
        int a = 1, b[] = {1, 2}, c;
        final var list = new ArrayList<Map<String, List<Integer>>>();
        @Deprecated int d;
        List<? super Integer>[] e = null;
        if (a > 0) b[0] = 1; else if (a < -1) { c = 2; } else if (a==0) ; else return;
        if (a > b[0]) if (b.length>1) a++; else a--;
        for (int i = 0, j = 1; i < 10 && j-->0; i++, --j) continue;
        for (;;) break;
        for (final Map.Entry<String, int[]> each : map.entrySet()) { System.out.println(each); }
        for (a = 0, b[1] = 2; ; ) { break; }
        outer:
        while (true) do { a += 2; if (a > 5) break outer; } while (a < 10);
        do a--; while (a > 0);
        switch (a) { case 1: case 2: b[0]++; break; default: { } case A, B: class Local { } int z = 1; }
        switch (a) { }
        switch (shape) {
            case Circle c when c.radius() > 1 && c.on() -> draw(c);
            case Point(int x, Point(var y, _)) -> { return; }
            case Square s -> throw new Error();
            case null, default -> a = 2;
        }
        int v = switch (day) { case MONDAY, FRIDAY -> 6; case X.Y -> { yield 7; } default -> throw new Error("x"); } + 1;
        int w = switch (day) { case 1: yield -1; default: yield a + 2; };
        try (var in = open(); Reader r = new Reader(in); other; this.more;) { read(in); } catch (final IOException | Error ex) { throw ex; } finally { close(); }
        try { a = 1; } finally { }
        synchronized (this) { notify(); }
        assert a > 0 : "message" + a;
        assert(a > 0);
        return;
    }
    int more(Object o) {
        record Pair(int a, int b) { }
        enum Color { RED }
        interface Local { void f(); }
        final class Deep { }
        if (o instanceof String) return(1);
        if (!(o instanceof final String s && s.length() > 2)) return 2;
        if (o instanceof List<?> l || o instanceof Pair(int a, var b)) return-1;
        new Thread() { @Override public void run() { go(); } }.start();
        this.x = super.y = z[0][1] = 3;
        ++a[0]; --this.b; (a).b++;
        Outer.this.f(); Outer.super.g(); super.<T>h(); this.<A, B>i(x);
        { ; }
        return x -> 3;
    }
}
