// Many clients, one engine: a thread that decodes for all of them, and one that gives each its
// tokens, so that formatting and sending never delay a step.
//
//   Service service(model, text, {.max_waiting = 512});
//   service.submit({.prompts = {{.prompt_ids = ids}}, .receiver = receiver});  // from any thread
//   service.stop(5);  // seconds for the answers under way
//
// A request whose receiver is gone is cancelled within a few steps; its place goes to the next.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "inference/live_engine.h"
#include "serve/served_model.h"
#include "text/text_stream.h"

namespace antisd::inline serve {

// A token on its way to a client.
struct ServedToken {
  std::int32_t id = 0;
  float logp = 0;
  std::vector<Alternative> alternatives;
};

// Takes the tokens of a request; `choice` is prompt x samples + sample. Called in one thread,
// except for is_gone().
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void token(int choice, ServedToken token) = 0;
  virtual void ended(int choice, FinishReason reason) = 0;
  virtual void failed(int status, const std::string& problem) = 0;  // nothing follows
  virtual bool is_gone() const = 0;                                 // from any thread
};

struct CompletionJob {
  std::vector<LiveRequest> prompts;  // without the calls
  std::vector<std::string> stop;
  std::shared_ptr<Receiver> receiver;
};

struct ServiceOptions {
  LiveOptions engine;
  int max_waiting = 512;  // sequences beyond those that are decoded
};

class Service {
 public:
  // `model` and `text` must outlive it.
  Service(const CausalLm& model, const ServedModel& text, const ServiceOptions& options);
  ~Service();

  std::int64_t context() const { return engine_.context(); }
  // ApiError (400) or InputError for what cannot be met.
  void check(const CompletionJob& job) const;
  // Of a job that passed check(). ApiError: 429 if too many wait, 503 after stop().
  void submit(CompletionJob job);
  // Takes no more, waits so long for answers under way, cuts the rest, and ends the threads.
  void stop(double seconds);

  int running() const { return running_; }  // sequences
  int waiting() const { return waiting_; }
  bool is_stopping() const { return stopping_; }
  // Why the engine ended by itself: what() of an exception, or "".
  std::string failure() const;

 private:
  struct Active {
    std::shared_ptr<Receiver> receiver;
    std::vector<std::uint64_t> tickets;
    int sequences = 0, unfinished = 0;
  };
  struct Event {
    enum class Kind { kToken, kEnded, kFailed };
    Kind kind = Kind::kToken;
    std::shared_ptr<Receiver> receiver;
    int choice = 0;
    ServedToken token;
    FinishReason reason = FinishReason::kStop;
    int status = 500;
    std::string problem;
  };

  void decode();
  int most_sequences() const { return options_.engine.max_sequences + options_.max_waiting; }
  bool admit();
  void start(CompletionJob job);
  void cancel_gone();
  void forget(std::uint64_t key);
  void fail_all(int status, const std::string& problem);
  void hand_over();
  void deliver();
  static void pass_on(Event& event);
  static Event failure_of(std::shared_ptr<Receiver> receiver, int status,
                          const std::string& problem);

  const ServedModel& text_;
  const ServiceOptions options_;
  LiveEngine engine_;

  // Of the decoding thread alone.
  std::unordered_map<std::uint64_t, Active> active_;
  std::vector<std::uint64_t> ended_;
  std::vector<Event> events_;
  std::uint64_t last_key_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable submitted_, delivered_, idle_;
  std::vector<CompletionJob> jobs_;
  std::vector<Event> outbox_;
  int sequences_ = 0;  // submitted and not ended
  bool cut_ = false, decoding_ended_ = false;
  std::string failure_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> running_ = 0, waiting_ = 0;
  std::thread decoder_, deliverer_;
};

}  // namespace antisd::inline serve
