#include "data/documents.h"

#include <deque>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/check.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "data/countdown.h"
#include "data/file_documents.h"
#include "data/prompt_stream.h"

namespace antisd::inline data {
namespace {

using Report = std::function<void(const std::string&)>;

constexpr std::size_t kStepsAhead = 4;

class TaskDocuments : public Documents {
 public:
  TaskDocuments(CountdownSource source, const DocumentOptions& options, const DocumentText& text)
      : source_(std::move(source)),
        options_(options),
        text_(text),
        pool_(std::min(available_threads() - 1, 4)) {
    check_vocabulary();
  }

  std::vector<TrainingDocument> batch(std::int64_t step) override {
    std::vector<TrainingDocument> documents(std::size_t(options_.per_step));
    pool_.parallel_for((documents.size() + kTogether - 1) / kTogether, [&](std::size_t part) {
      const std::size_t end = std::min((part + 1) * kTogether, documents.size());
      for (std::size_t i = part * kTogether; i < end; ++i)
        documents[i] = encode(
            countdown_document(source_, options_.mix, std::uint32_t(step), std::uint32_t(i)));
    });
    return documents;
  }

  std::string fingerprint() const override {
    const MixConfig& m = options_.mix;
    return fmt::format("{} seed {} mix {} {} {} {} {} {} {} x {}", source_.name(), source_.seed,
                       m.plain, m.persistence, m.go_on, m.copy, m.hinted_persistence, m.hint,
                       m.max_tries, options_.per_step);
  }

 private:
  static constexpr std::size_t kTogether = 32;

  TrainingDocument encode(CountdownDocument&& words) const {
    TrainingDocument document;
    document.ids = text_.tokenizer.encode(words.prompt);
    document.counts.resize(document.ids.size(), false);
    const std::vector<TokenId> response = text_.tokenizer.encode(words.response);
    document.ids.insert(document.ids.end(), response.begin(), response.end());
    document.ids.push_back(*text_.end);
    document.counts.resize(document.ids.size(), true);
    document.prompt = std::move(words.prompt);
    document.bench = fmt::format("countdown-{}", words.numbers);
    return document;
  }

  void check_vocabulary() const {
    const char* words =
        "Numbers target | Let + - * = ; no holds Wait So boxed Previous attempt Assessment correct "
        "incorrect Solve 0 10 99 123 400";
    const std::vector<TokenId> ids = text_.tokenizer.encode(words);
    if (text_.end && text_.tokenizer.decode(ids) == words) return;
    throw InputError("the model's tokenizer lacks words of the task, or an end-of-sequence token",
                     {.where = source_.name(),
                      .remedy = "leave model.path empty: the task has its own tokenizer"});
  }

  CountdownSource source_;
  DocumentOptions options_;
  DocumentText text_;
  ThreadPool pool_;
};

// Items of a list in shuffled epochs.
class ListedDocuments : public Documents {
 public:
  ListedDocuments(std::vector<TrainingDocument> items, const DocumentOptions& options)
      : items_(std::move(items)),
        per_step_(options.per_step),
        stream_(items_.size(), hash(), {.seed = options.seed, .shuffle = options.shuffle}) {}

  std::vector<TrainingDocument> batch(std::int64_t step) override {
    const auto given = std::uint64_t(step * per_step_);
    if (stream_.given() != given) {
      Json state = stream_.state();
      state["epoch"] = given / items_.size();
      state["position"] = given % items_.size();
      stream_.restore(state);
    }
    std::vector<TrainingDocument> documents;
    for (const std::size_t index : stream_.next(std::size_t(per_step_)))
      documents.push_back(items_[index]);
    return documents;
  }

  std::string fingerprint() const override {
    return fmt::format("{} documents {} x {}", items_.size(), hash(), per_step_);
  }

 private:
  std::string hash() const {
    std::uint64_t hash = items_.size();
    for (const TrainingDocument& item : items_)
      hash = XXH3_64bits_withSeed(item.ids.data(), item.ids.size() * sizeof(TokenId),
                                  hash + item.prompt_tokens());
    return fmt::format("{:016x}", hash);
  }

  std::vector<TrainingDocument> items_;
  std::int64_t per_step_;
  PromptStream stream_;
};

// The built-in task of the sources; nothing if they are files.
std::optional<CountdownSource> task_of(const DocumentOptions& options) {
  for (const std::string& source : options.sources) {
    if (!is_countdown_source(source)) continue;
    if (options.sources.size() > 1) {
      throw InputError("a built-in task cannot be mixed with other sources",
                       {.where = source, .remedy = "give only the task, e.g. countdown:3+4"});
    }
    return CountdownSource::parse(source, options.seed);
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Documents> make_documents(const DocumentOptions& options, const DocumentText& text,
                                          const Report& report) {
  if (options.sources.empty()) {
    throw InputError("no documents are named",
                     {.where = "pretrain.source",
                      .remedy = "give countdown:3+4, .txt files, or .jsonl files with \"text\" or "
                                "\"messages\""});
  }
  if (std::optional<CountdownSource> task = task_of(options)) {
    if (task->split == CountdownSplit::kHeldOut) {
      throw InputError("held-out problems are not for training",
                       {.where = options.sources.front(), .remedy = "leave out :held-out"});
    }
    return std::make_unique<TaskDocuments>(std::move(*task), options, text);
  }
  return std::make_unique<ListedDocuments>(
      read_documents(options.sources, text, options.max_tokens, report), options);
}

std::vector<TrainingDocument> held_out_documents(const DocumentOptions& trained,
                                                 const std::vector<std::string>& sources,
                                                 std::int64_t count, const DocumentText& text,
                                                 const Report& report) {
  if (!sources.empty()) {
    std::vector<TrainingDocument> documents =
        read_documents(sources, text, trained.max_tokens, report);
    documents.resize(std::min(documents.size(), std::size_t(count)));
    return documents;
  }
  std::optional<CountdownSource> task = task_of(trained);
  if (!task) return {};
  task->split = CountdownSplit::kHeldOut;
  DocumentOptions options = trained;
  options.per_step = count;
  return TaskDocuments(std::move(*task), options, text).batch(0);
}

struct DocumentsAhead::Queue {
  Documents& documents;
  std::int64_t coming, last;
  std::deque<std::future<std::vector<TrainingDocument>>> batches;
  ThreadPool maker{1};  // destroyed first: it may be running

  void fill() {
    for (; coming < last && batches.size() < kStepsAhead; ++coming)
      batches.push_back(maker.submit([this, step = coming] { return documents.batch(step); }));
  }
};

DocumentsAhead::DocumentsAhead(Documents& documents, std::int64_t first, std::int64_t last)
    : queue_(new Queue{.documents = documents, .coming = first, .last = last, .batches = {}}) {
  queue_->fill();
}

DocumentsAhead::~DocumentsAhead() = default;

std::vector<TrainingDocument> DocumentsAhead::next() {
  ANTISD_CHECK(!queue_->batches.empty());
  std::vector<TrainingDocument> batch = queue_->batches.front().get();
  queue_->batches.pop_front();
  queue_->fill();
  return batch;
}

}  // namespace antisd::inline data
