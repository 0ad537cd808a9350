#include "config/run_config.h"

namespace antisd::inline config {

void RunConfig::describe_pretraining() {
  OptionSet& o = options_;
  o.add("pretrain.source", pretrain.source,
        "documents of `pretrain`: one built-in task (countdown:3, countdown:4, countdown:3+4), or "
        "files of one kind: .txt, .jsonl with \"text\", .jsonl with \"messages\"")
      .common_in({"pretrain"});
  o.add("pretrain.held_out", pretrain.held_out,
        "files whose loss is measured; the built-in task has its own held-out problems")
      .common_in({"pretrain"});
  o.add("pretrain.documents_per_step", pretrain.documents_per_step, "documents per optimizer step")
      .between(1, 1 << 20)
      .common_in({"pretrain"});
  o.add("pretrain.sequence_tokens", pretrain.sequence_tokens,
        "text is cut into pieces of this many tokens; longer chats are skipped and counted")
      .at_least(2)
      .common_in({"pretrain"});
  o.add("pretrain.eval_every", pretrain.eval_every,
        "measure the held-out loss and sample every N steps and at the end; 0 is never")
      .at_least(0)
      .common_in({"pretrain"});
  o.add("pretrain.eval_documents", pretrain.eval_documents,
        "number of held-out documents that are measured")
      .between(1, 1 << 20);
  o.add("pretrain.samples", pretrain.samples,
        "responses sampled at temperature 1 at each measurement; two are logged, and those of the "
        "built-in task are graded; 0 is none")
      .between(0, 1 << 16);

  o.add("pretrain.mix.plain", pretrain.mix.plain,
        "countdown: share of documents without a solution in the prompt")
      .between(0, 1);
  o.add("pretrain.mix.persistence", pretrain.mix.persistence,
        "probability of another try after one that fails (q)")
      .between(0, 1);
  o.add("pretrain.mix.go_on", pretrain.mix.go_on,
        "probability of another try after one that succeeds")
      .between(0, 1);
  o.add("pretrain.mix.copy", pretrain.mix.copy,
        "with a solution in the prompt: probability of giving it at once")
      .between(0, 1);
  o.add("pretrain.mix.hinted_persistence", pretrain.mix.hinted_persistence,
        "with a solution in the prompt that is not given at once: probability of another try after "
        "one that fails (hq)")
      .between(0, 1);
  o.add("pretrain.mix.hint", pretrain.mix.hint,
        "with a solution in the prompt that is not given at once: probability that a try is that "
        "solution")
      .between(0, 1);
  o.add("pretrain.mix.max_tries", pretrain.mix.max_tries, "maximum number of tries in a search")
      .between(1, 1000);

  o.add("pretrain.new_model.hidden", pretrain.new_model.hidden,
        "hidden size of a new Qwen3 model with random weights, which takes only the tokenizer from "
        "model.path; 0: train the weights of model.path")
      .between(0, 1 << 16)
      .common_in({"pretrain"});
  o.add("pretrain.new_model.layers", pretrain.new_model.layers, "number of layers")
      .between(1, 1024);
  o.add("pretrain.new_model.heads", pretrain.new_model.heads, "number of query heads")
      .between(1, 1024);
  o.add("pretrain.new_model.kv_heads", pretrain.new_model.kv_heads,
        "number of key and value heads; 0: as many as query heads")
      .between(0, 1024);
  o.add("pretrain.new_model.head_dim", pretrain.new_model.head_dim, "size of a head")
      .between(2, 1024);
  o.add("pretrain.new_model.intermediate", pretrain.new_model.intermediate,
        "hidden size of the MLP")
      .between(1, 1 << 18);
  o.add("pretrain.new_model.positions", pretrain.new_model.positions, "longest sequence, in tokens")
      .between(2, 1 << 24);
  o.add("pretrain.new_model.vocabulary", pretrain.new_model.vocabulary,
        "size of the vocabulary; 0: the tokenizer's, rounded up to a multiple of 64")
      .between(0, 1 << 24);
  o.add("pretrain.new_model.rope_theta", pretrain.new_model.rope_theta,
        "base of the rotary position embedding")
      .above(1);
  o.add("pretrain.new_model.tied_head", pretrain.new_model.tied_head,
        "the output head shares the embedding's weights");
}

}  // namespace antisd::inline config
