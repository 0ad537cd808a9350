#include "config/run_config.h"

namespace antisd::inline config {

void RunConfig::describe_pretraining() {
  OptionSet& o = options_;
  o.add("pretrain.source", pretrain.source,
        "documents of `pretrain`: one built-in task (countdown:3, countdown:4, countdown:3+4), or "
        "files of one kind: .txt, .jsonl with \"text\", .jsonl with \"messages\"");
  o.add("pretrain.held_out", pretrain.held_out,
        "files whose loss is measured; the built-in task has problems of its own for that");
  o.add("pretrain.documents_per_step", pretrain.documents_per_step, "documents of an update")
      .between(1, 1 << 20);
  o.add("pretrain.sequence_tokens", pretrain.sequence_tokens,
        "text is cut into pieces of so many tokens; longer chats are left out and counted")
      .at_least(2);
  o.add("pretrain.eval_every", pretrain.eval_every,
        "measure the held-out loss and sample each so many steps, and at the end; 0 is never")
      .at_least(0);
  o.add("pretrain.eval_documents", pretrain.eval_documents, "held-out documents that are measured")
      .between(1, 1 << 20);
  o.add("pretrain.samples", pretrain.samples,
        "responses sampled at temperature 1 then, two of them for the log; those of the built-in "
        "task are graded; 0 is none")
      .between(0, 1 << 16);

  o.add("pretrain.mix.plain", pretrain.mix.plain,
        "countdown: share of documents without a solution in the prompt")
      .between(0, 1);
  o.add("pretrain.mix.persistence", pretrain.mix.persistence,
        "probability to go on after a failed try (q)")
      .between(0, 1);
  o.add("pretrain.mix.go_on", pretrain.mix.go_on, "probability to go on after a try that holds")
      .between(0, 1);
  o.add("pretrain.mix.copy", pretrain.mix.copy,
        "with a solution in the prompt: probability to give it at once")
      .between(0, 1);
  o.add("pretrain.mix.hinted_persistence", pretrain.mix.hinted_persistence,
        "with a solution that is not given at once: probability to go on after a failed try (hq)")
      .between(0, 1);
  o.add("pretrain.mix.hint", pretrain.mix.hint, "and that a try is the solution itself")
      .between(0, 1);
  o.add("pretrain.mix.max_tries", pretrain.mix.max_tries, "tries of a search at most")
      .between(1, 1000);

  o.add("pretrain.new_model.hidden", pretrain.new_model.hidden,
        "width of a Qwen3 model with random weights; 0: the weights are those of model.path, which "
        "otherwise gives its tokenizer alone")
      .between(0, 1 << 16);
  o.add("pretrain.new_model.layers", pretrain.new_model.layers, "blocks").between(1, 1024);
  o.add("pretrain.new_model.heads", pretrain.new_model.heads, "heads of queries").between(1, 1024);
  o.add("pretrain.new_model.kv_heads", pretrain.new_model.kv_heads,
        "heads of keys and values; 0: as many as of queries")
      .between(0, 1024);
  o.add("pretrain.new_model.head_dim", pretrain.new_model.head_dim, "width of a head")
      .between(2, 1024);
  o.add("pretrain.new_model.intermediate", pretrain.new_model.intermediate,
        "width of the gated unit")
      .between(1, 1 << 18);
  o.add("pretrain.new_model.positions", pretrain.new_model.positions, "longest sequence")
      .between(2, 1 << 24);
  o.add("pretrain.new_model.vocabulary", pretrain.new_model.vocabulary,
        "rows of the embedding; 0: the tokenizer's, rounded up to a multiple of 64")
      .between(0, 1 << 24);
  o.add("pretrain.new_model.rope_theta", pretrain.new_model.rope_theta, "base of the rotations")
      .above(1);
  o.add("pretrain.new_model.tied_head", pretrain.new_model.tied_head, "the head is the embedding");
}

}  // namespace antisd::inline config
