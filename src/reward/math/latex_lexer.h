// LaTeX, Unicode mathematics, plain text and Python spellings -> one stream of tokens.
//
// Tokens without meaning (\left, \displaystyle, spacing, $) are dropped here, and different
// spellings get one form: "\tfrac", "\dfrac" -> command "frac"; "²" -> ^ 2; "**" -> ^; "≤", "<=",
// "\leq" -> relation "l"; "1,000", "1\,000", "1{,}000" -> the number 1000; "np.arcsin" -> command
// "arcsin"; "\text{ and }" -> a comma.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reward/math/budget.h"

namespace antisd::inline reward::math {

enum class TokenKind {
  kNumber,    // text: digits with an optional point and exponent
  kFraction,  // text "1/2": a vulgar fraction character
  kSymbol,    // text: the name of a variable or constant
  kCommand,   // text: canonical name of a function or construction
  kWord,      // text: letters that are not mathematics
  kRelation,  // text: one character of namespace relation
  kOperator,  // text: + - * / ^ _ ! % ' : | & (one character), "\\" for a row end
  kOpen,      // text: ( [ { or \{ as "s", floor "f", ceiling "c", angle "a"
  kClose,     // text: likewise; "." closes anything
  kComma,     // text: "," ";" "and" or "or"
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  bool space_before = false;
};

struct LexerOptions {
  bool group_digits = true;  // "1,000" is one number, not two
};

// Throws BudgetExceeded for texts longer than kMaxAnswerBytes.
std::vector<Token> lex(std::string_view text, const LexerOptions& options = {});

}  // namespace antisd::inline reward::math
