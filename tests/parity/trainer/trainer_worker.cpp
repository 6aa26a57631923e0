// SPDX-License-Identifier: Apache-2.0
// Trains one of trainer_models.hpp on recorded data from recorded weights, by training arguments in a file:
//
//   acc-trainer-worker mlp|hungry|cnn|transformer DATA.pt WEIGHTS.safetensors ARGUMENTS.json
#include <cstdio>
#include <string>

#include "acc/checkpoint.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/trainer.hpp"
#include "parity/trainer/trainer_models.hpp"

namespace {

double mean_of(const at::Tensor& numbers) {
  return numbers.to(at::kDouble).mean().item<double>();
}

acc::Metrics metrics(const acc::EvalPrediction& all) {
  if (!all.losses.defined()) return {{"accuracy", mean_of(all.predictions.argmax(-1).eq(all.label_ids))}};
  return {{"accuracy", mean_of(all.predictions.eq(all.label_ids))},
          {"losses", mean_of(all.losses)},
          {"inputs", mean_of(all.inputs)}};
}

at::Tensor highest(const at::Tensor& logits, const at::Tensor& /*labels*/) {
  return logits.argmax(-1);
}

template <class Net>
void train(Net net, const acc::PtValue& data, const char* weights, const acc::TrainingArguments& arguments) {
  acc::load_state(*net, acc::read_weights(weights), weights);
  const auto tensor = [&](const char* name) { return *data.find(name)->template get_if<at::Tensor>(); };
  const bool preprocesses = !arguments.include_for_metrics.empty();
  acc::Trainer trainer(net, arguments, acc::TensorDataset(tensor("train_inputs"), tensor("train_labels")),
                       acc::TensorDataset(tensor("eval_inputs"), tensor("eval_labels")),
                       {.compute_metrics = metrics,
                        .preprocess_logits_for_metrics = preprocesses ? highest : acc::PreprocessLogits()});
  trainer.train();
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
