#include "reward/math/latex_names.h"

#include <string>
#include <unordered_map>

namespace antisd::inline reward::math {
namespace {

using Table = std::unordered_map<std::string_view, Name>;

void add(Table& table, NameClass kind, std::string_view names, std::string_view value = {}) {
  while (!names.empty()) {
    const std::size_t end = names.find(' ');
    const std::string_view name = names.substr(0, end);
    table[name] = {kind, value.empty() ? name : value};
    if (end == std::string_view::npos) break;
    names.remove_prefix(end + 1);
  }
}

// Functions that LaTeX and plain text share.
void add_functions(Table& table) {
  add(table, NameClass::kCommand,
      "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech "
      "csch arcsinh arccosh arctanh exp ln log max min gcd lcm det dim arg sqrt binom floor ceil "
      "sum prod int lim abs cbrt");
  const auto alias = [&](std::string_view from, std::string_view to) {
    table[from] = {NameClass::kCommand, to};
  };
  alias("asin", "arcsin"), alias("acos", "arccos"), alias("atan", "arctan");
  alias("tg", "tan"), alias("ctg", "cot"), alias("cosec", "csc"), alias("arctg", "arctan");
  alias("asinh", "arcsinh"), alias("acosh", "arccosh"), alias("atanh", "arctanh");
  alias("arsinh", "arcsinh"), alias("arcosh", "arccosh"), alias("artanh", "arctanh");
  alias("sh", "sinh"), alias("ch", "cosh"), alias("th", "tanh");
  alias("ceiling", "ceil"), alias("binomial", "binom"), alias("GCD", "gcd"), alias("LCM", "lcm");
  alias("Re", "re"), alias("Im", "im"), alias("lg", "lg"), alias("log10", "lg");
  alias("log2", "lb"), alias("tr", "tr"), alias("rank", "rank");
}

Table make_commands() {
  Table table;
  add(table, NameClass::kDrop,
      "big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr middle displaystyle textstyle "
      "scriptstyle limits nolimits quad qquad space enspace thinspace mathbf mathit mathcal mathsf "
      "boldsymbol bm vec mathfrak mathscr mathnormal overrightarrow bf it rm sf strut cal "
      "nonumber hfill centering boxed fbox smallskip medskip bigskip noindent left "
      "( ) [ ] , ; ! : > \" # $ underline pounds euro");
  table["/"] = {NameClass::kDrop, "/"};
  add(table, NameClass::kText,
      "text textbf textit textrm textsf texttt textnormal mbox hbox mathrm operatorname emph "
      "textsc mathop");
  add(table, NameClass::kCommand, "frac tfrac dfrac cfrac sfrac nicefrac", "frac");
  add(table, NameClass::kCommand, "binom dbinom tbinom", "binom");
  add_functions(table);
  for (const std::string_view name : {"sh", "ch", "th", "tr", "rank", "abs", "floor", "ceil", "lb",
                                      "log2", "log10", "ceiling", "int"})
    table.erase(name);
  add(table, NameClass::kCommand, "int iint iiint oint", "int");
  add(table, NameClass::kCommand,
      "limsup liminf sup inf ker deg mod pmod bmod over choose begin "
      "end overline hat bar tilde dot ddot widehat widetilde emptyset right");
  add(table, NameClass::kCommand, "varnothing", "emptyset");
  add(table, NameClass::kCommand, "tg", "tan");
  add(table, NameClass::kRelation, "leq le leqslant leqq", "l");
  add(table, NameClass::kRelation, "geq ge geqslant geqq", "g");
  add(table, NameClass::kRelation, "lt", "<");
  add(table, NameClass::kRelation, "gt", ">");
  add(table, NameClass::kRelation, "ne neq not", "n");
  add(table, NameClass::kRelation, "in", "i");
  add(table, NameClass::kRelation, "approx simeq thickapprox", "a");
  add(table, NameClass::kRelation, "doteq coloneqq", "=");
  add(table, NameClass::kRelation,
      "equiv sim cong propto to rightarrow Rightarrow implies iff mapsto subset subseteq supset "
      "longrightarrow Longrightarrow Leftrightarrow leftrightarrow perp parallel notin",
      "~");
  add(table, NameClass::kOperator, "cdot times ast star *", "*");
  add(table, NameClass::kOperator, "div", "/");
  add(table, NameClass::kOperator, "pm", "p");
  add(table, NameClass::kOperator, "mp", "m");
  add(table, NameClass::kOperator, "%", "%");
  add(table, NameClass::kOperator, "cup bigcup", "U");
  add(table, NameClass::kOperator, "cap bigcap", "N");
  add(table, NameClass::kOperator, "setminus backslash smallsetminus", "\\");
  add(table, NameClass::kOperator, "\\ cr newline tabularnewline", "r");
  add(table, NameClass::kOperator, "prime", "'");
  add(table, NameClass::kOperator, "circ degree degrees textdegree", "o");
  add(table, NameClass::kOperator, "| vert lvert rvert mid Vert lVert rVert", "|");
  add(table, NameClass::kOperator, "colon", ":");
  add(table, NameClass::kOpen, "{ lbrace", "s");
  add(table, NameClass::kClose, "} rbrace", "s");
  add(table, NameClass::kOpen, "lfloor", "f");
  add(table, NameClass::kClose, "rfloor", "f");
  add(table, NameClass::kOpen, "lceil", "c");
  add(table, NameClass::kClose, "rceil", "c");
  add(table, NameClass::kOpen, "langle", "(");
  add(table, NameClass::kClose, "rangle", ")");
  add(table, NameClass::kOpen, "lbrack", "[");
  add(table, NameClass::kClose, "rbrack", "]");
  add(table, NameClass::kOpen, "lparen", "(");
  add(table, NameClass::kClose, "rparen", ")");
  add(table, NameClass::kComma, "& land wedge", "and");
  add(table, NameClass::kComma, "lor vee", "or");
  add(table, NameClass::kSymbol, "infty", "infinity");
  add(table, NameClass::kSymbol, "ldots dots cdots dotsc dotsb vdots ddots", "dots");
  add(table, NameClass::kSymbol, "imath", "i");
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string_view>{"varepsilon", "epsilon"},
        {"varphi", "phi"},
        {"vartheta", "theta"},
        {"varrho", "rho"},
        {"varsigma", "sigma"},
        {"varpi", "pi"}})
    table[from] = {NameClass::kSymbol, to};
  return table;
}

Table make_words() {
  Table table;
  add_functions(table);
  add(table, NameClass::kSymbol, "pi Pi PI", "pi");
  add(table, NameClass::kSymbol, "infinity inf infty oo Infinity Inf", "infinity");
  add(table, NameClass::kSymbol, "theta alpha beta gamma delta lambda omega sigma epsilon");
  add(table, NameClass::kComma, "and And AND", "and");
  add(table, NameClass::kComma, "or Or OR", "or");
  add(table, NameClass::kOperator, "degrees degree Degrees", "o");
  add(table, NameClass::kOperator, "percent Percent percentage pct", "%");
  add(table, NameClass::kOperator, "union", "U");
  for (const std::string_view name : {"int", "sh", "ch", "th", "dim", "det", "tr", "sum", "arg"})
    table.erase(name);
  return table;
}

std::unordered_map<char32_t, Name> make_characters() {
  using enum NameClass;
  std::unordered_map<char32_t, Name> table = {
      {U'π', {kSymbol, "pi"}},       {U'∞', {kSymbol, "infinity"}},  {U'√', {kCommand, "sqrt"}},
      {U'∛', {kCommand, "cbrt"}},    {U'×', {kOperator, "*"}},       {U'·', {kOperator, "*"}},
      {U'⋅', {kOperator, "*"}},      {U'∗', {kOperator, "*"}},       {U'÷', {kOperator, "/"}},
      {U'⁄', {kOperator, "/"}},      {U'∕', {kOperator, "/"}},       {U'−', {kOperator, "-"}},
      {U'–', {kOperator, "-"}},      {U'—', {kOperator, "-"}},       {U'±', {kOperator, "p"}},
      {U'∓', {kOperator, "m"}},      {U'°', {kOperator, "o"}},       {U'º', {kOperator, "o"}},
      {U'′', {kOperator, "'"}},      {U'’', {kOperator, "'"}},       {U'≤', {kRelation, "l"}},
      {U'⩽', {kRelation, "l"}},      {U'≥', {kRelation, "g"}},       {U'⩾', {kRelation, "g"}},
      {U'≠', {kRelation, "n"}},      {U'≈', {kRelation, "a"}},       {U'＝', {kRelation, "="}},
      {U'∈', {kRelation, "i"}},      {U'≡', {kRelation, "~"}},       {U'→', {kRelation, "~"}},
      {U'⇒', {kRelation, "~"}},      {U'∪', {kOperator, "U"}},       {U'∩', {kOperator, "N"}},
      {U'∖', {kOperator, "\\"}},     {U'∅', {kCommand, "emptyset"}}, {U'ø', {kCommand, "emptyset"}},
      {U'⌊', {kOpen, "f"}},          {U'⌋', {kClose, "f"}},          {U'⌈', {kOpen, "c"}},
      {U'⌉', {kClose, "c"}},         {U'⟨', {kOpen, "("}},           {U'⟩', {kClose, ")"}},
      {U'（', {kOpen, "("}},         {U'）', {kClose, ")"}},         {U'，', {kComma, ","}},
      {U'、', {kComma, ","}},        {U'；', {kComma, ";"}},         {U'：', {kOperator, ":"}},
      {U'％', {kOperator, "%"}},     {U'∣', {kOperator, "|"}},       {U'…', {kSymbol, "dots"}},
      {U'⋯', {kSymbol, "dots"}},     {U'ℝ', {kSymbol, "Reals"}},     {U'ℤ', {kSymbol, "Integers"}},
      {U'ℕ', {kSymbol, "Naturals"}}, {U'ℚ', {kSymbol, "Rationals"}}, {U'ℂ', {kSymbol, "Complexes"}},
      {U'½', {kFraction, "1/2"}},    {U'⅓', {kFraction, "1/3"}},     {U'⅔', {kFraction, "2/3"}},
      {U'¼', {kFraction, "1/4"}},    {U'¾', {kFraction, "3/4"}},     {U'⅕', {kFraction, "1/5"}},
      {U'⅖', {kFraction, "2/5"}},    {U'⅗', {kFraction, "3/5"}},     {U'⅘', {kFraction, "4/5"}},
      {U'⅙', {kFraction, "1/6"}},    {U'⅚', {kFraction, "5/6"}},     {U'⅛', {kFraction, "1/8"}},
      {U'⅜', {kFraction, "3/8"}},    {U'⅝', {kFraction, "5/8"}},     {U'⅞', {kFraction, "7/8"}},
      {U'⅑', {kFraction, "1/9"}},    {U'⅒', {kFraction, "1/10"}},    {U'⅐', {kFraction, "1/7"}},
      {U'⁰', {kDigit, "0"}},         {U'¹', {kDigit, "1"}},          {U'²', {kDigit, "2"}},
      {U'³', {kDigit, "3"}},         {U'⁴', {kDigit, "4"}},          {U'⁵', {kDigit, "5"}},
      {U'⁶', {kDigit, "6"}},         {U'⁷', {kDigit, "7"}},          {U'⁸', {kDigit, "8"}},
      {U'⁹', {kDigit, "9"}},         {U'⁻', {kDigit, "-"}},          {U'ⁿ', {kDigit, "n"}},
  };
  for (const char32_t c :
       U"\u00a0\u2009\u200a\u200b\u202f\u2003\u2002\u3000\u2061\u2062\ufeff€£¥₹。")
    table[c] = {kDrop, ""};
  static constexpr std::string_view kGreek[] = {
      "alpha", "beta",   "gamma",   "delta", "epsilon", "zeta",    "eta",  "theta", "iota",
      "kappa", "lambda", "mu",      "nu",    "xi",      "omicron", "pi",   "rho",   "sigma",
      "sigma", "tau",    "upsilon", "phi",   "chi",     "psi",     "omega"};
  for (std::size_t k = 0; k < std::size(kGreek); ++k)
    table[U'α' + k] = {kSymbol, kGreek[k]};
  table[U'Δ'] = {kSymbol, "Delta"}, table[U'Ω'] = {kSymbol, "Omega"};
  table[U'Σ'] = {kCommand, "sum"}, table[U'∑'] = {kCommand, "sum"}, table[U'∫'] = {kCommand, "int"};
  return table;
}

std::unordered_map<std::string_view, Unit> make_units() {
  std::unordered_map<std::string_view, Unit> table;
  const auto unit = [&](std::string_view base, double scale,
                        std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      table[name] = {base, scale};
  };
  unit("m", 1, {"m", "meter", "meters", "metre", "metres"});
  unit("m", 1e-2, {"cm", "centimeter", "centimeters", "centimetre", "centimetres"});
  unit("m", 1e-3, {"mm", "millimeter", "millimeters"});
  unit("m", 1e3, {"km", "kilometer", "kilometers", "kilometre", "kilometres"});
  unit("inch", 1, {"in", "inch", "inches"});
  unit("inch", 12, {"ft", "foot", "feet"});
  unit("inch", 36, {"yd", "yard", "yards"});
  unit("inch", 63360, {"mi", "mile", "miles"});
  unit("s", 1, {"s", "sec", "secs", "second", "seconds"});
  unit("s", 60, {"min", "mins", "minute", "minutes"});
  unit("s", 3600, {"h", "hr", "hrs", "hour", "hours"});
  unit("day", 1, {"day", "days"});
  unit("day", 7, {"week", "weeks"});
  unit("month", 1, {"month", "months"});
  unit("month", 12, {"year", "years", "yr", "yrs"});
  unit("g", 1, {"g", "gram", "grams"});
  unit("g", 1e3, {"kg", "kilogram", "kilograms"});
  unit("g", 1e-3, {"mg", "milligram", "milligrams"});
  unit("ounce", 1, {"oz", "ounce", "ounces"});
  unit("ounce", 16, {"lb", "lbs", "pound", "pounds"});
  unit("cent", 1, {"cent", "cents"});
  unit("cent", 100, {"dollar", "dollars", "usd"});
  unit("am", 1, {"am"});
  unit("pm", 1, {"pm"});
  unit("", 1,
       {"mph",     "kph",    "units", "unit",       "sq",       "square", "cubic",   "euros",
        "euro",    "liters", "liter", "litre",      "litres",   "ml",     "mL",      "gallons",
        "gallon",  "quarts", "cups",  "people",     "students", "ways",   "points",  "integers",
        "times",   "apples", "books", "coins",      "km/h",     "m/s",    "hz",      "nm",
        "ev",      "kj",     "mol",   "pa",         "atm",      "kpa",    "amu",     "newtons",
        "joules",  "watts",  "volts", "amps",       "ohms",     "kelvin", "celsius", "fahrenheit",
        "radians", "radian", "rad",   "bits",       "bytes",    "rpm",    "cm2",     "m2",
        "km2",     "games",  "hits",  "boys",       "girls",    "men",    "women",   "tons",
        "ton",     "acres",  "acre",  "miles/hour", "btu",      "pesos",  "rupees",  "yuan",
        "yen"});
  return table;
}

}  // namespace

Name find_command(std::string_view name) {
  static const Table table = make_commands();
  const auto found = table.find(name);
  return found == table.end() ? Name{} : found->second;
}

Name find_word(std::string_view name) {
  static const Table table = make_words();
  const auto found = table.find(name);
  return found == table.end() ? Name{} : found->second;
}

Name find_character(char32_t code_point) {
  static const std::unordered_map<char32_t, Name> table = make_characters();
  const auto found = table.find(code_point);
  return found == table.end() ? Name{} : found->second;
}

Unit find_unit(std::string_view lower_case) {
  static const std::unordered_map<std::string_view, Unit> table = make_units();
  const auto found = table.find(lower_case);
  return found == table.end() ? Unit{} : found->second;
}

bool is_known_unit(std::string_view lower_case) {
  static const std::unordered_map<std::string_view, Unit> table = make_units();
  return table.contains(lower_case);
}

}  // namespace antisd::inline reward::math
