#include "dist/agreement.h"

#include <algorithm>
#include <array>
#include <exception>

#include <fmt/format.h>

#include "core/check.h"
#include "core/not_finite.h"

namespace antisd::inline dist {
namespace {

// The first character of a message: how the work ended.
constexpr char kDone = '.', kInputError = 'i', kNotFinite = 'n', kRunError = 'r', kCall = 'c';

std::string failure_message(const Error& error) {
  char kind = error.exit_status() == 2 ? kInputError : kRunError;
  if (dynamic_cast<const NotFinite*>(&error) != nullptr) kind = kNotFinite;
  std::string message(1, kind);
  for (const std::string* part :
       {&error.problem(), &error.context().where, &error.context().remedy})
    message += *part + '\0';
  return message;
}

[[noreturn]] void throw_failure(std::size_t rank, const std::string& message) {
  std::array<std::string, 3> parts;  // problem, where, remedy
  std::size_t begin = 1;
  for (std::string& part : parts) {
    const std::size_t end = message.find('\0', begin);
    ANTISD_CHECK(end != std::string::npos);
    part = message.substr(begin, end - begin);
    begin = end + 1;
  }
  const std::string problem = fmt::format("rank {}: {}", rank, parts[0]);
  const ErrorContext context{.where = parts[1], .remedy = parts[2]};
  if (message[0] == kInputError) throw InputError(problem, context);
  if (message[0] == kNotFinite) throw NotFinite(problem, context);
  throw RunError(problem, context);
}

// How the work ended here, as a message for all.
struct Ending {
  std::string message;
  std::exception_ptr error = {};
};

Ending ending_of(const std::function<std::string()>& work) {
  try {
    return {kDone + work()};
  } catch (const RankLost&) {
    throw;
  } catch (const Error& error) {
    return {failure_message(error), std::current_exception()};
  }
}

}  // namespace

std::vector<std::string> gather_agreed(Communicator& ranks,
                                       const std::function<std::string()>& work) {
  if (ranks.size() == 1) return {work()};
  const Ending own = ending_of(work);
  std::vector<std::string> all = ranks.gather(own.message);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r][0] == kDone) continue;
    if (static_cast<int>(r) == ranks.rank()) std::rethrow_exception(own.error);
    throw_failure(r, all[r]);
  }
  for (std::string& text : all)
    text.erase(0, 1);
  return all;
}

void agree(Communicator& ranks, const std::function<void()>& work) {
  gather_agreed(ranks, [&] {
    work();
    return std::string();
  });
}

void in_step(Communicator& ranks, const std::function<void()>& work) {
  try {
    work();
  } catch (const RankLost&) {
    throw;
  } catch (const Error& error) {
    if (ranks.size() == 1) throw;
    throw FailedAlone(error.problem(), error.context());
  }
}

bool any_of(Communicator& ranks, bool own) {
  return std::ranges::any_of(ranks.gather(own ? "1" : "0"),
                             [](const std::string& one) { return one == "1"; });
}

std::string first_says(Communicator& ranks, const std::string& own) {
  return ranks.gather(ranks.rank() == 0 ? own : std::string())[0];
}

void lead(Communicator& ranks, const std::function<void(const std::function<void()>& call)>& work,
          const std::function<void()>& help) {
  if (ranks.rank() == 0) {
    const Ending own = ending_of([&] {
      work([&] { ranks.gather(std::string(1, kCall)); });
      return std::string();
    });
    ranks.gather(own.message);
    if (own.error) std::rethrow_exception(own.error);
    return;
  }
  for (;;) {
    const std::string message = ranks.gather("")[0];
    if (message[0] == kDone) return;
    if (message[0] != kCall) throw_failure(0, message);
    try {
      help();
    } catch (const RankLost&) {
      throw;
    } catch (const Error&) {  // rank 0 has it too; what it makes of it comes next
    }
  }
}

}  // namespace antisd::inline dist
