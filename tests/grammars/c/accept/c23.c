[[nodiscard]] int f(void);
[[nodiscard("why"), gnu::pure]] [[deprecated]] static int g(int a, int b [[maybe_unused]]);
int h([[maybe_unused]] int, char *) { return 0; }
struct [[gnu::packed]] s { int a [[deprecated]]; _BitInt(7) b; };
enum e : unsigned char { A [[deprecated]] = 1, B };
enum : unsigned long long { C };
enum e2 : uint8_t;
int x [[a]] = 1'000'000, y = 0b1010'1010u, z = 0xFF'FFull;
double d = 1'0.5'0e1'0;
unsigned _BitInt(33) w = 1uwb;
constexpr int k[3] = {};
[[noreturn]];
void i(int x) {
  switch (x) { case 1: x++; [[fallthrough]]; case 2: ; }
  if (x) [[likely]] { } else [[unlikely]] return;
  [[maybe_unused]] auto a = nullptr;
  [[assume(x > 1)]] ;
  [[x]] l: ;
  for (;;) [[x]] break;
}
