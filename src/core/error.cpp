#include "core/error.h"

namespace antisd::inline core {
namespace {

std::string join_message(const std::string& problem, const ErrorContext& context) {
  std::string text = context.where.empty() ? problem : context.where + ": " + problem;
  if (!context.remedy.empty()) text += "; " + context.remedy;
  return text;
}

}  // namespace

Error::Error(std::string problem, ErrorContext context, int exit_status)
    : std::runtime_error(join_message(problem, context)),
      problem_(std::move(problem)),
      context_(std::move(context)),
      exit_status_(exit_status) {}

std::string Error::message() const {
  return what();
}

}  // namespace antisd::inline core
