// SPDX-License-Identifier: Apache-2.0
// Trains one of trainer_models.hpp on recorded data from recorded weights, by training arguments in a file:
//
//   acc-trainer-worker mlp|hungry|cnn|transformer DATA.pt WEIGHTS.safetensors ARGUMENTS.json
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "acc/checkpoint.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/trainer.hpp"
#include "parity/trainer/trainer_models.hpp"

namespace {

double mean_of(const at::Tensor& numbers) {
  return numbers.to(at::kDouble).mean().item<double>();
}

double accuracy(const acc::EvalPrediction& rows) {
  return mean_of(rows.predictions.argmax(-1).eq(rows.label_ids));
}

acc::Metrics metrics(const acc::EvalPrediction& all) {
  if (!all.batches.empty()) {
    double sum = 0;
    for (const acc::EvalPrediction& batch : all.batches) sum += accuracy(batch);
    return {{"accuracy", sum / double(all.batches.size())}};
  }
  if (!all.losses.defined()) return {{"accuracy", accuracy(all)}};
  return {{"accuracy", mean_of(all.predictions.eq(all.label_ids))},
          {"losses", mean_of(all.losses)},
          {"inputs", mean_of(all.inputs)}};
}

// Of the three batches of an evaluation.
acc::ComputeBatchMetrics batch_accuracy() {
  return [sum = 0.0](const acc::EvalPrediction& batch, bool compute_result) mutable {
    sum += accuracy(batch);
    if (!compute_result) return acc::Metrics();
    return acc::Metrics{{"accuracy", std::exchange(sum, 0) / 3}};
  };
}

// Images whose lengths, to group them, are their labels.
struct Rows : acc::TensorDataset<2> {
  using TensorDataset::TensorDataset;
  std::vector<std::size_t> lengths() const {
    const at::Tensor& labels = (*this)[1];
    std::vector<std::size_t> lengths;
    for (std::int64_t i = 0; i < labels.size(0); ++i) lengths.push_back(labels[i].item<std::int64_t>());
    return lengths;
  }
};

at::Tensor highest(const at::Tensor& logits, const at::Tensor& /*labels*/) {
  return logits.argmax(-1);
}

template <class Net>
void train(Net net, const acc::PtValue& data, const char* weights, const acc::TrainingArguments& arguments) {
  acc::load_state(*net, acc::read_weights(weights), weights);
  const auto tensor = [&](const char* name) { return *data.find(name)->template get_if<at::Tensor>(); };
  const auto eval = [&](std::int64_t begin, std::int64_t end) {
    return Rows(tensor("eval_inputs").slice(0, begin, end), tensor("eval_labels").slice(0, begin, end));
  };
  const std::int64_t rows = tensor("eval_labels").size(0);
  std::map<std::string, Rows> sets;
  if (arguments.run_name == "sets") {
    sets.emplace("first", eval(0, 40));
    sets.emplace("second", eval(40, rows));
  } else {
    sets.emplace("", eval(0, rows));
  }
  acc::TrainerOptions options;
  if (arguments.batch_eval_metrics)
    options.compute_batch_metrics = batch_accuracy();
  else
    options.compute_metrics = metrics;
  if (!arguments.include_for_metrics.empty()) options.preprocess_logits_for_metrics = highest;
  options.pad_token_id = 0;
  acc::Trainer trainer(net, arguments, Rows(tensor("train_inputs"), tensor("train_labels")), sets, options);
  trainer.train();
  if (arguments.bf16_full_eval || arguments.fp16_full_eval) trainer.evaluate();
  trainer.save_model();
  trainer.save_state();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) throw acc::Error({.what = "needs a model, data, weights and arguments", .where = argv[0]});
  const std::string model = argv[1];
  const acc::PtValue data = acc::read_pt_file(argv[2]);
  const acc::TrainingArguments arguments = acc::read_training_arguments(argv[4]);
  if (model == "mlp") train(Mlp(784), data, argv[3], arguments);
  if (model == "hungry") train(Hungry(784), data, argv[3], arguments);
  if (model == "cnn") train(Cnn(), data, argv[3], arguments);
  if (model == "transformer") train(Transformer(), data, argv[3], arguments);
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
