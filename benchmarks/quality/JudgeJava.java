import com.sun.source.util.JavacTask;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** A line of a name and a text in base64 in, a list of errors out: what javac's parser says, and nothing behind it. */
public class JudgeJava {
  public static void main(String[] arguments) throws Exception {
    var input = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = input.readLine()) != null; ) {
      System.out.println(errors(new String(Base64.getDecoder().decode(line.split("\t")[1]), "UTF-8")));
      System.out.flush();
    }
  }

  private static String errors(String text) throws Exception {
    var found = new DiagnosticCollector<JavaFileObject>();
    var source = new SimpleJavaFileObject(URI.create("string:///File.java"), JavaFileObject.Kind.SOURCE) {
      @Override
      public CharSequence getCharContent(boolean ignore) {
        return text;
      }
    };
    var compiler = ToolProvider.getSystemJavaCompiler();
    ((JavacTask) compiler.getTask(null, null, found, List.of("-proc:none"), null, List.of(source))).parse();
    var errors = new ArrayList<String>();
    for (var each : found.getDiagnostics()) {
      if (each.getKind() == Diagnostic.Kind.ERROR) {
        String message = each.getMessage(Locale.ENGLISH).replaceAll("[^ -~]|[\"\\\\]", " ");
        errors.add("\"line " + each.getLineNumber() + ": " + message + "\"");
      }
    }
    return errors.toString();
  }
}
