#include "reward/math/answer_text.h"

#include <algorithm>

#include "reward/math/characters.h"
#include "reward/math/latex_lexer.h"

namespace antisd::inline reward::math {

std::string text_key(std::string_view answer) {
  const std::vector<Token> tokens = lex(answer);
  std::string key;
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    const Token& token = tokens[k];
    // Braces around one token do not matter: x^{2} is x^2.
    if (token.text == "{" && k + 2 < tokens.size() && tokens[k + 2].text == "}") continue;
    if (token.text == "}" && k >= 2 && tokens[k - 2].text == "{") continue;
    if (token.kind == TokenKind::kNumber && !key.empty() && is_digit(key.back())) key += '|';
    key += lower(token.text);
  }
  return key;
}

std::optional<char> choice_letter(std::string_view answer, bool strict) {
  for (const std::string_view wrapper :
       {"\\text{", "\\textbf{", "\\mathrm{", "\\mathbf{", "\\textnormal{"})
    if (answer.starts_with(wrapper)) answer.remove_prefix(wrapper.size());
  const bool bracket = answer.starts_with("(");
  if (bracket) answer.remove_prefix(1);
  while (answer.starts_with(" "))
    answer.remove_prefix(1);
  if (answer.empty() || answer[0] < 'A' || answer[0] > 'J') return std::nullopt;
  const char letter = answer[0];
  answer.remove_prefix(1);
  while (!answer.empty() && (answer[0] == ' ' || answer[0] == '}'))
    answer.remove_prefix(1);
  if (answer.empty()) return letter;
  if (answer[0] != ')' && answer[0] != '.' && answer[0] != ':') return std::nullopt;
  if (bracket && answer[0] != ')') return std::nullopt;
  answer.remove_prefix(1);
  while (!answer.empty() && (answer[0] == ' ' || answer[0] == '}' || answer[0] == '.'))
    answer.remove_prefix(1);
  return answer.empty() || !strict ? std::optional(letter) : std::nullopt;
}

std::string_view without_choice_letter(std::string_view answer) {
  std::string_view rest = answer;
  for (const std::string_view wrapper : {"\\text{", "\\textbf{", "\\mathrm{", "\\mathbf{"})
    if (rest.starts_with(wrapper)) rest.remove_prefix(wrapper.size());
  if (rest.size() < 5 || rest[0] != '(' || rest[1] < 'A' || rest[1] > 'J' || rest[2] != ')')
    return answer;
  rest.remove_prefix(3);
  if (rest[0] != ' ' && rest[0] != '}' && rest[0] != '\\') return answer;
  if (rest[0] == '}') rest.remove_prefix(1);
  rest.remove_prefix(std::min(rest.find_first_not_of(" }~"), rest.size()));
  return rest.empty() ? answer : rest;
}

std::optional<std::string> leading_verdict(std::string_view answer) {
  if (answer.starts_with("\\text{")) answer.remove_prefix(6);
  std::string word;
  for (const char c : answer.substr(0, 6)) {
    if (!is_letter(c)) break;
    word += lower(c);
  }
  if (word != "yes" && word != "no" && word != "true" && word != "false") return std::nullopt;
  // "no solution" and the like are not verdicts.
  if (word.size() < answer.size() && (answer[word.size()] == ' ' || answer[word.size()] == '-'))
    return std::nullopt;
  return word;
}

}  // namespace antisd::inline reward::math
