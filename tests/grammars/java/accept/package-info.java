@NonNull
package a.b;

import x.Y;
