import a.b;
package c;
