// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <array>
#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/data/data_loader.hpp"
#include "acc/runtime/data/sample_lengths.hpp"
#include "acc/runtime/data/samplers.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"
#include "acc/runtime/trainer/default_loss.hpp"
#include "acc/runtime/trainer/low_precision_weights.hpp"
#include "acc/runtime/trainer/trainer_base.hpp"

namespace acc {

namespace detail {

/// A parameter that takes a module as shared_ptr or as the holder that TORCH_MODULE defines.
template <class Module>
struct ModulePointer {
  template <std::derived_from<Module> Given>
  ModulePointer(std::shared_ptr<Given> module) : pointer(std::move(module)) {}  // NOLINT: implicit
  template <TorchModuleHolder Holder>
  ModulePointer(const Holder& holder) : pointer(holder.ptr()) {}  // NOLINT: implicit

  std::shared_ptr<Module> pointer;
};

/// The module type of a shared_ptr or of a holder that TORCH_MODULE defines.
template <class Given>
using ModuleOf = std::remove_cvref_t<decltype(*std::declval<Given&>())>;

/// What forward takes of a batch. A Model converts no list that forward may change.
template <class Part>
auto& input_of(Part& part) {
  if constexpr (std::is_same_v<Part, at::Tensor>) {
    return part;
  } else {
    return std::as_const(part);
  }
}

/// Calls forward, with constants if it takes them.
template <class Module, class... Parts>
auto forward_parts(Model<Module>& model, Parts&... parts) {
  if constexpr (requires(Module& module) { module.forward(input_of(parts)...); }) {
    return model.forward(input_of(parts)...);
  } else {
    return model.forward(parts...);
  }
}

// forward_on returns the logits and labels of a batch. It is defined for batches that have inputs and labels.

/// For a pair, tuple or array of tensors: calls forward with the elements I.
template <class Module, class Batch, std::size_t... I>
auto forward_with(Model<Module>& model, Batch& batch, std::index_sequence<I...> /*inputs*/)
  requires requires(Module& module) { module.forward(std::get<I>(batch)...); }
{
  return forward_parts(model, std::get<I>(batch)...);
}

template <class Batch>
using InputIndices = std::make_index_sequence<std::tuple_size<Batch>::value - 1>;

template <class Module, class Batch>
auto forward_on(Model<Module>& model, Batch& batch)
  requires requires {
    std::tuple_size<Batch>::value;
    { forward_with(model, batch, InputIndices<Batch>()) } -> std::convertible_to<at::Tensor>;
    { std::get<std::tuple_size<Batch>::value - 1>(batch) } -> std::convertible_to<at::Tensor>;
  }
{
  at::Tensor logits = forward_with(model, batch, InputIndices<Batch>());
  return std::pair{std::move(logits), std::get<std::tuple_size<Batch>::value - 1>(batch)};
}

/// For a torch::data::Example.
template <class Module, class Example>
auto forward_on(Model<Module>& model, Example& batch)
  requires requires(Module& module) {
    { module.forward(batch.data) } -> std::convertible_to<at::Tensor>;
    { batch.target } -> std::convertible_to<at::Tensor>;
  }
{
  at::Tensor logits = forward_parts(model, batch.data);
  return std::pair{std::move(logits), batch.target};
}

/// What a model returns that takes the labels, too, and computes its own loss, as CompiledModel does: the
/// loss, and its outputs.
using LossAndOutputs = std::pair<at::Tensor, std::vector<at::Tensor>>;

// step_on returns what such a model returns for a batch, and the labels.

template <class Module, class Batch, std::size_t... I>
auto step_with(Model<Module>& model, Batch& batch, std::index_sequence<I...> /*tensors*/)
  requires requires(Module& module) {
    { module.forward(std::get<I>(batch)...) } -> std::same_as<LossAndOutputs>;
  }
{
  return forward_parts(model, std::get<I>(batch)...);
}

template <class Module, class Batch>
auto step_on(Model<Module>& model, Batch& batch)
  requires requires {
    step_with(model, batch, std::make_index_sequence<std::tuple_size<Batch>::value>());
    { std::get<std::tuple_size<Batch>::value - 1>(batch) } -> std::convertible_to<at::Tensor>;
  }
{
  LossAndOutputs output = step_with(model, batch, std::make_index_sequence<std::tuple_size<Batch>::value>());
  return std::pair{std::move(output), std::get<std::tuple_size<Batch>::value - 1>(batch)};
}

template <class Module, class Example>
auto step_on(Model<Module>& model, Example& batch)
  requires requires(Module& module) {
    { module.forward(batch.data, batch.target) } -> std::same_as<LossAndOutputs>;
  }
{
  return std::pair{forward_parts(model, batch.data, batch.target), batch.target};
}

}  // namespace detail

/// Trains and evaluates a model, as transformers' Trainer: `acc::Trainer trainer(net, arguments, train,
/// test); trainer.train();` Batches are those of a DataLoader over the data; the last tensor of a batch are
/// the labels, the others are passed to the model's forward. For other batches, or another loss, derive from
/// this class and override compute_loss. The program can be started alone or by `acc launch`.
template <class Module, class TrainData, class EvalData = TrainData>
class Trainer : public TrainerBase {
 public:
  using Batch = typename DataLoader<TrainData>::Batch;  ///< What the loops get.
  static_assert(std::same_as<Batch, typename DataLoader<EvalData>::Batch>,
                "training and evaluation data must have batches of the same type");

  /// Together: joins the job, see Accelerator, and seeds the random number generators. Throws Error{usage}
  /// for invalid arguments, see completed().
  Trainer(detail::ModulePointer<Module> module, const TrainingArguments& arguments, TrainData train,
          TrainerOptions options = {})
      : TrainerBase(arguments, std::move(options)),
        module_(std::move(module.pointer)),
        train_(std::move(train)) {}
  Trainer(detail::ModulePointer<Module> module, const TrainingArguments& arguments, TrainData train,
          EvalData eval, TrainerOptions options = {})
      : TrainerBase(arguments, std::move(options)),
        module_(std::move(module.pointer)),
        train_(std::move(train)) {
    eval_.emplace("", std::move(eval));
  }
  /// With several evaluation sets, whose metrics are named `eval_NAME_loss` and so on.
  Trainer(detail::ModulePointer<Module> module, const TrainingArguments& arguments, TrainData train,
          std::map<std::string, EvalData> eval, TrainerOptions options = {})
      : TrainerBase(arguments, std::move(options)),
        module_(std::move(module.pointer)),
        train_(std::move(train)),
        eval_(std::move(eval)) {}

  using TrainerBase::evaluate;

  /// Does what evaluate() does, on other data.
  Metrics evaluate_on(EvalData data, const std::string& metric_key_prefix = "eval") {
    return run_evaluation(pass_over(loader_over(std::move(data))), "Evaluation", metric_key_prefix, false)
        .metrics;
  }

  /// Returns predictions, labels and metrics for `data`, on every process for all of the data.
  PredictionOutput predict(EvalData data, const std::string& metric_key_prefix = "test") {
    return run_evaluation(pass_over(loader_over(std::move(data))), "Prediction", metric_key_prefix, true);
  }

  const std::shared_ptr<Module>& model() const { return module_; }  ///< The prepared model.

 protected:
  /// Computes the loss of a batch, and the logits and labels that evaluation needs: the default loss, or that
  /// of a model that takes the labels, too, and returns it with its outputs. Override it for another loss.
  virtual LossOutput compute_loss(Model<Module>& model, Batch& batch) {
    if constexpr (kTakesLabels) {
      require_no_label_smoothing();
      auto [output, labels] = detail::step_on(model, batch);
      return {.loss = output.first,
              .logits = output.second.empty() ? at::Tensor() : output.second.front(),
              .labels = labels};
    } else if constexpr (requires { detail::forward_on(model, batch); }) {
      const auto [logits, labels] = detail::forward_on(model, batch);
      return {.loss = default_loss(logits, labels, arguments().label_smoothing_factor),
              .logits = logits,
              .labels = labels};
    } else {
      throw Error({.what = "the batch does not consist of inputs for the model's forward and of labels",
                   .where = "Trainer",
                   .hint = "override compute_loss"});
    }
  }

  /// Runs forward and backward on a batch and returns the loss, divided by `batches_in_step`.
  virtual at::Tensor training_step(Model<Module>& model, Batch& batch, std::size_t batches_in_step) {
    model->train();
    const at::Tensor loss =
        detail::loss_of_step(compute_loss(model, batch).loss) / static_cast<double>(batches_in_step);
    free_unused_memory();
    accelerator().backward(loss);
    return loss.detach();
  }

  using TrainLoader = DataLoader<TrainData>;  ///< Reads the training data.
  using EvalLoader = DataLoader<EvalData>;    ///< Reads an evaluation set.

  /// Creates the loader of the training data, which is then prepared. Override it for another sampler or
  /// other options.
  virtual TrainLoader create_train_loader(TrainData data) {
    DataLoaderOptions options = loader_options(true);
    if (!TrainLoader::kIterable && arguments().train_sampling_strategy == SamplingStrategy::group_by_length)
      options.sampler = length_grouped_sampler(data);
    return TrainLoader(std::move(data), options);
  }

  /// Creates the loader of an evaluation set, which is then prepared. Override it as create_train_loader.
  virtual EvalLoader create_eval_loader(EvalData data) {
    return EvalLoader(std::move(data), loader_options(false));
  }

  /// What the arguments say of a loader, without a sampler.
  DataLoaderOptions loader_options(bool training) const {
    const TrainingArguments& a = arguments();
    DataLoaderOptions options;
    options.batch_size =
        static_cast<std::size_t>(training ? a.per_device_train_batch_size : a.per_device_eval_batch_size);
    options.shuffle =
        training && !TrainLoader::kIterable && a.train_sampling_strategy == SamplingStrategy::random;
    options.drop_last = a.dataloader_drop_last;
    options.seed = a.data_seed ? *a.data_seed : a.seed;
    options.num_workers = static_cast<std::size_t>(a.dataloader_num_workers);
    if (a.dataloader_prefetch_factor)
      options.prefetch_factor = static_cast<std::size_t>(*a.dataloader_prefetch_factor);
    options.pin_memory = a.dataloader_pin_memory;
    return options;
  }

  torch::nn::Module& module() final { return *module_; }

 private:
  std::shared_ptr<const Sampler> length_grouped_sampler(TrainData& data) const {
    if constexpr (SizedSamples<TrainData>) {
      const int batch = arguments().per_device_train_batch_size * arguments().gradient_accumulation_steps;
      return std::make_shared<LengthGroupedSampler>(sample_lengths(data), static_cast<std::size_t>(batch));
    } else {
      throw Error({.what = "the training data does not say how long its samples are",
                   .where = "train_sampling_strategy",
                   .hint = "give it lengths()"});
    }
  }

  void save_weights(const std::filesystem::path& folder) final {
    accelerator().save_model(evaluated_model(), folder);
  }
  void load_weights(const std::filesystem::path& folder) final {
    accelerator().load_model(evaluated_model(), folder);
  }

  void prepare_training() final {
    end_epoch();
    model_ = accelerator().prepare_model(module_);
    train_loader_ = accelerator().prepare_data_loader(create_train_loader(train_));
    eval_loaders_.clear();
    for (const auto& [name, data] : eval_) eval_loaders_.emplace(name, loader_over(data));
  }

  LoaderPosition train_position() const final { return train_loader_->plan().next(); }

  std::size_t num_train_examples() const final { return train_loader_->plan().dataset_size(); }
  std::optional<std::size_t> train_batches() const final {
    if constexpr (TrainLoader::kIterable) {
      return std::nullopt;
    } else {
      return train_loader_->size();
    }
  }

  void begin_epoch(std::uint64_t epoch, bool resumed) final {
    if (!resumed) train_loader_->set_epoch(epoch);
    pass_.emplace(train_loader_->begin());
    is_read_ = false;
  }
  std::size_t read_batches(std::size_t count) final {
    batches_.clear();
    while (batches_.size() < count) {
      // The pass ends after the step of its last batch: a checkpoint of that step is before the epoch's end.
      if (!batches_.empty() && pass_->is_last()) break;
      // Advances only now: a checkpoint counts the iterator's current batch as used.
      if (std::exchange(is_read_, false)) ++*pass_;
      if (*pass_ == std::default_sentinel) break;
      batches_.push_back(std::move(**pass_));
      is_read_ = true;
    }
    return batches_.size();
  }
  void skip_rest_of_epoch() final { train_loader_->plan().skip_rest(); }
  void end_epoch() final {
    batches_.clear();
    pass_.reset();
    if (train_loader_) train_loader_->plan().leave_pass();
  }

  static at::Tensor first_tensor(Batch& batch) {
    at::Tensor first;
    for_each_tensor(batch, [&](const at::Tensor& tensor) {
      if (!first.defined()) first = tensor;
    });
    return first;
  }

  at::Tensor inputs_of(std::size_t batch) final { return first_tensor(batches_[batch]); }

  at::Tensor train_on(std::size_t batch, std::size_t batches_in_step, bool synchronize) final {
    const bool always = arguments().accelerator_config.gradient_accumulation_kwargs.sync_each_batch ||
                        (model_->distributed() && model_->distributed()->averages_every_batch());
    if (synchronize || always) return training_step(*model_, batches_[batch], batches_in_step);
    const NoSync no_sync = accelerator().no_sync(*model_);
    return training_step(*model_, batches_[batch], batches_in_step);
  }

  std::vector<std::string> eval_names() const final {
    std::vector<std::string> names;
    for (const auto& [name, data] : eval_) names.push_back(name);
    return names;
  }
  EvaluationPass evaluation_pass(const std::string& name) final {
    auto loader = eval_loaders_.find(name);
    if (loader == eval_loaders_.end())
      loader = eval_loaders_.emplace(name, loader_over(eval_.at(name))).first;
    return pass_over(loader->second);
  }

  EvalLoader loader_over(EvalData data) {
    return accelerator().prepare_data_loader(create_eval_loader(std::move(data)), {.evaluation_mode = true});
  }

  EvaluationPass pass_over(EvalLoader loader) {
    EvaluationPass pass;
    if constexpr (!EvalLoader::kIterable) {
      pass.num_examples = loader.plan().dataset_size();
      pass.num_batches = loader.size();
    }
    pass.for_each = [this, loader](const auto& each) mutable {
      const at::NoGradGuard no_grad;
      loader.set_epoch(0);  // each evaluation is the same, also after a checkpoint
      with_evaluated_model([&](Model<Module>& model) {
        for (Batch& batch : loader) {
          std::int64_t rows = 0;
          for_each_tensor(batch, [&](const at::Tensor& tensor) {
            if (rows == 0 && tensor.dim() > 0) rows = tensor.size(0);
          });
          const at::Tensor inputs = first_tensor(batch);
          each(compute_loss(model, batch), rows, inputs);
        }
      });
    };
    return pass;
  }

  // Calls `evaluate` with the model, whose weights meanwhile have the evaluation_type().
  template <class Evaluate>
  void with_evaluated_model(const Evaluate& evaluate) {
    Model<Module>& model = evaluated_model();
    model->eval();
    const std::optional<at::ScalarType> type = evaluation_type();
    if (!type) return evaluate(model);
    // A pass of no layers: the buffers of the last step, which rank 0 has, come in their own precision.
    if (model.distributed()) model.distributed()->run_forward([] { return at::Tensor(); });
    const SaveRefusal no_saves(*this);
    detail::LowPrecisionWeights weights(*module_, *type);
    Model<Module> converted = model.with_weights_type(*type, kTakesLabels);
    evaluate(converted);
    weights.keep_changes();
  }

  // The model that was prepared for training; before training, prepares it for evaluation only.
  Model<Module>& evaluated_model() {
    if (!model_) model_ = accelerator().prepare_model(module_, {.evaluation_mode = true});
    return *model_;
  }

  // Whether the last tensor of a batch goes to the model's forward, which computes the loss.
  static constexpr bool kTakesLabels =
      requires(Model<Module>& model, Batch& batch) { detail::step_on(model, batch); };

  std::shared_ptr<Module> module_;
  TrainData train_;
  // By name; the only one may have none.
  std::map<std::string, EvalData> eval_ = {};
  std::optional<Model<Module>> model_ = {};
  std::optional<TrainLoader> train_loader_ = {};
  std::map<std::string, EvalLoader> eval_loaders_ = {};
  std::optional<typename TrainLoader::Iterator> pass_ = {};
  // Whether the iterator's current batch has been used.
  bool is_read_ = false;
  std::vector<Batch> batches_ = {};
};

template <class Given, class TrainData>
Trainer(Given, TrainingArguments, TrainData) -> Trainer<detail::ModuleOf<Given>, TrainData>;
template <class Given, class TrainData>
Trainer(Given, TrainingArguments, TrainData, TrainerOptions) -> Trainer<detail::ModuleOf<Given>, TrainData>;
template <class Given, class TrainData, class EvalData>
Trainer(Given, TrainingArguments, TrainData, EvalData)
    -> Trainer<detail::ModuleOf<Given>, TrainData, EvalData>;
template <class Given, class TrainData, class EvalData>
Trainer(Given, TrainingArguments, TrainData, std::map<std::string, EvalData>)
    -> Trainer<detail::ModuleOf<Given>, TrainData, EvalData>;
template <class Given, class TrainData, class EvalData>
Trainer(Given, TrainingArguments, TrainData, std::map<std::string, EvalData>, TrainerOptions)
    -> Trainer<detail::ModuleOf<Given>, TrainData, EvalData>;
template <class Given, class TrainData, class EvalData>
Trainer(Given, TrainingArguments, TrainData, EvalData, TrainerOptions)
    -> Trainer<detail::ModuleOf<Given>, TrainData, EvalData>;

}  // namespace acc
