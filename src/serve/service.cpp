#include "serve/service.h"

#include <chrono>
#include <iterator>

#include <fmt/format.h>

#include "core/error.h"
#include "core/start_thread.h"
#include "serve/api_error.h"

namespace antisd::inline serve {
namespace {

constexpr int kStepsBetweenLooks = 8;           // for clients that have left
constexpr std::size_t kMostEvents = 64 * 1024;  // on their way: the engine waits for the rest

const std::string kStopping = "the server is stopping";

int sequences_of(const CompletionJob& job) {
  int sequences = 0;
  for (const LiveRequest& request : job.prompts)
    sequences += request.samples;
  return sequences;
}

}  // namespace

Service::Service(const CausalLm& model, const ServedModel& text, const ServiceOptions& options)
    : text_(text), options_(options), engine_(model, options.engine) {
  deliverer_ = start_thread([this] { deliver(); });
  decoder_ = start_thread([this] { decode(); });
}

Service::~Service() {
  stop(0);
}

std::string Service::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Service::check(const CompletionJob& job) const {
  for (const LiveRequest& request : job.prompts) {
    const std::int64_t tokens = std::ssize(request.prompt_ids);
    if (tokens >= context()) {
      throw ApiError(400,
                     fmt::format("the prompt has {} tokens, and the model's context is {} tokens "
                                 "for prompt and answer",
                                 tokens, context()),
                     "prompt", "context_length_exceeded");
    }
    engine_.check(request);
  }
  if (sequences_of(job) > most_sequences()) {
    throw ApiError(400, fmt::format("{} responses in one request; this server takes at most {}",
                                    sequences_of(job), most_sequences()));
  }
}

void Service::submit(CompletionJob job) {
  const int sequences = sequences_of(job), most = most_sequences();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || decoding_ended_) throw ApiError(503, kStopping);
    if (sequences_ + sequences > most) {
      throw ApiError(429,
                     fmt::format("{} responses are under way and this server takes at most {}; try "
                                 "again in a moment",
                                 sequences_, most),
                     "", "queue_full");
    }
    sequences_ += sequences;
    jobs_.push_back(std::move(job));
  }
  submitted_.notify_one();
}

Service::Event Service::failure_of(std::shared_ptr<Receiver> receiver, int status,
                                   const std::string& problem) {
  Event event;
  event.kind = Event::Kind::kFailed;
  event.receiver = std::move(receiver);
  event.status = status;
  event.problem = problem;
  return event;
}

// ---- the decoding thread ----

void Service::decode() {
  std::string failure;
  try {
    for (int step = 0; admit(); ++step) {
      engine_.step();
      for (const std::uint64_t key : std::exchange(ended_, {}))
        forget(key);
      if (step % kStepsBetweenLooks == 0) cancel_gone();
      running_ = engine_.running();
      waiting_ = engine_.waiting();
      hand_over();
    }
    fail_all(503, kStopping);
  } catch (const std::exception& error) {
    failure = error.what();
    fail_all(500, "the server failed");
  }
  hand_over();
  const std::lock_guard lock(mutex_);
  for (const CompletionJob& job : jobs_)
    outbox_.push_back(failure_of(job.receiver, 503, kStopping));
  jobs_.clear();
  failure_ = failure;
  decoding_ended_ = true;
  delivered_.notify_all();
  idle_.notify_all();
}

// Takes new requests, or waits for one if there is nothing to do. False at the end.
bool Service::admit() {
  std::vector<CompletionJob> jobs;
  {
    std::unique_lock lock(mutex_);
    if (active_.empty()) {
      idle_.notify_all();
      submitted_.wait(lock, [this] { return cut_ || !jobs_.empty() || stopping_; });
    }
    if (cut_ || (stopping_ && active_.empty() && jobs_.empty())) return false;
    jobs.swap(jobs_);
  }
  for (CompletionJob& job : jobs)
    start(std::move(job));
  return true;
}

void Service::start(CompletionJob job) {
  const std::uint64_t key = ++last_key_;
  Active& active = active_[key];
  active.receiver = job.receiver;
  const auto stops = job.stop.empty() ? nullptr : std::make_shared<const StopStrings>(job.stop);
  int first = 0;  // choice of the prompt's first sample
  for (LiveRequest& request : job.prompts) {
    const auto ids = std::make_shared<std::vector<std::vector<std::int32_t>>>(
        stops ? static_cast<std::size_t>(request.samples) : 0);
    request.on_token = [this, first, stops, ids, receiver = job.receiver](int sample,
                                                                          const LiveToken& token) {
      events_.push_back(
          {.receiver = receiver,
           .choice = first + sample,
           .token = {
               token.id, token.raw_logp, {token.alternatives.begin(), token.alternatives.end()}}});
      if (!stops) return false;
      std::vector<std::int32_t>& own = (*ids)[static_cast<std::size_t>(sample)];
      own.push_back(token.id);
      return stops->complete(*text_.tokenizer(), own);
    };
    request.on_end = [this, first, key](int sample, FinishReason reason) {
      Active& mine = active_.at(key);
      events_.push_back({.kind = Event::Kind::kEnded,
                         .receiver = mine.receiver,
                         .choice = first + sample,
                         .reason = reason});
      if (--mine.unfinished == 0) ended_.push_back(key);
    };
    request.on_failure = [this, key](const std::string& problem) {
      events_.push_back(failure_of(active_.at(key).receiver, 500, problem));
      ended_.push_back(key);
    };
    first += request.samples;
    active.tickets.push_back(engine_.add(std::move(request)));
  }
  active.sequences = active.unfinished = first;
}

void Service::cancel_gone() {
  std::vector<std::uint64_t> gone;
  for (const auto& [key, active] : active_)
    if (active.receiver->is_gone()) gone.push_back(key);
  for (const std::uint64_t key : gone)
    forget(key);
}

void Service::forget(std::uint64_t key) {
  const auto found = active_.find(key);
  if (found == active_.end()) return;
  for (const std::uint64_t ticket : found->second.tickets)
    engine_.cancel(ticket);  // does nothing for those that have ended
  const int sequences = found->second.sequences;
  active_.erase(found);
  const std::lock_guard lock(mutex_);
  sequences_ -= sequences;
}

void Service::fail_all(int status, const std::string& problem) {
  for (const auto& [key, active] : active_)
    events_.push_back(failure_of(active.receiver, status, problem));
  active_.clear();
}

// Gives a step's events to the other thread.
void Service::hand_over() {
  if (events_.empty()) return;
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return outbox_.size() < kMostEvents; });
    if (outbox_.empty()) {
      outbox_.swap(events_);
    } else {
      std::move(events_.begin(), events_.end(), std::back_inserter(outbox_));
    }
  }
  events_.clear();
  delivered_.notify_one();
}

// ---- the delivering thread ----

void Service::pass_on(Event& event) {
  switch (event.kind) {
    case Event::Kind::kToken:
      return event.receiver->token(event.choice, std::move(event.token));
    case Event::Kind::kEnded:
      return event.receiver->ended(event.choice, event.reason);
    case Event::Kind::kFailed:
      return event.receiver->failed(event.status, event.problem);
  }
}

void Service::deliver() {
  while (true) {
    std::vector<Event> events;
    {
      std::unique_lock lock(mutex_);
      delivered_.wait(lock, [this] { return !outbox_.empty() || decoding_ended_; });
      if (outbox_.empty()) return;
      events.swap(outbox_);
    }
    idle_.notify_all();
    for (Event& event : events) {
      try {
        pass_on(event);
      } catch (const std::exception&) {  // out of memory: only this client is lost
      }
    }
  }
}

void Service::stop(double seconds) {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    submitted_.notify_all();
    idle_.wait_for(lock, std::chrono::duration<double>(seconds),
                   [this] { return decoding_ended_; });
    cut_ = true;
    submitted_.notify_all();
  }
  if (decoder_.joinable()) decoder_.join();
  if (deliverer_.joinable()) deliverer_.join();
}

}  // namespace antisd::inline serve
