// What one rank throws, all throw: a step fails on every rank or on none.
//
//   agree(ranks, [&] { score_own_share(); });
//   const std::vector<std::string> all = gather_agreed(ranks, [&] { return sample_own_share(); });
//
// This is for errors of the work itself (a grader, NaN, a bad row). A rank that dies says nothing
// any more; the others learn that from its silence (Communicator::gather).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dist/communicator.h"

namespace antisd::inline dist {

// Runs `work` and returns what each rank's work returned, by rank. Where it threw an Error on some
// ranks, every rank throws the error of the first of them, after all have finished. That rank
// throws its own; the others an InputError, NotFinite or RunError with the same text.
std::vector<std::string> gather_agreed(Communicator& ranks,
                                       const std::function<std::string()>& work);

void agree(Communicator& ranks, const std::function<void()>& work);

// Runs work in which the ranks exchange memory and no messages, such as a backward pass. An Error
// of it on one of several ranks becomes FailedAlone: the others are in the middle of the exchange.
void in_step(Communicator& ranks, const std::function<void()>& work);

// Whether it is so on any rank.
bool any_of(Communicator& ranks, bool own);
// What rank 0 says.
std::string first_says(Communicator& ranks, const std::string& own);

// Rank 0 works, and the others help it: each time `work` calls its argument, they run `help`, which
// makes the calls of the ranks that `work` makes next. What `work` throws, all throw. An error of
// `help` has to be one that `work` gets too, by agree(); `work` decides what becomes of it.
//
//   lead(ranks,
//        [&](const auto& call) { write_file([&] { call(); return collect(ranks); }); },
//        [&] { collect(ranks); });
void lead(Communicator& ranks, const std::function<void(const std::function<void()>& call)>& work,
          const std::function<void()>& help);

}  // namespace antisd::inline dist
