// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/optimizer_state.hpp"

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/checkpoint/optimizer_fields.hpp"

namespace acc::detail {
namespace {

using torch::optim::Optimizer;
using Tensors = std::deque<at::Tensor>;

// Python counts steps in a float32, which cannot represent every integer beyond this.
constexpr double kMaxFloatSteps = 1 << 24;

[[noreturn]] void refuse_kind() {
  throw Error({.what = "the state of this kind of optimizer cannot be saved or loaded",
               .where = "optimizer",
               .hint = "SGD, Adam, AdamW, RMSprop, Adagrad, Adafactor, Muon and LBFGS can"});
}

// Adds fields to a dict.
struct WriteFields {
  PtDict& dict;

  void operator()(const char* name, double field) const { dict.push_back({name, field}); }
  void operator()(const char* name, bool field) const { dict.push_back({name, field}); }
  template <class... Numbers>
  void operator()(const char* name, const std::tuple<Numbers...>& field) const {
    std::apply([&](auto... numbers) { dict.push_back({name, PtTuple{{numbers...}}}); }, field);
  }
  void operator()(const char* name, std::int64_t steps) const {
    dict.push_back({name, steps_tensor(static_cast<double>(steps))});
  }
  void operator()(const char* name, const at::Tensor& field) const {
    // A momentum of sparse gradients as a dense one, with which the training goes on as well.
    if (field.defined()) dict.push_back({name, field.is_sparse() ? field.to_dense() : field});
  }
  void operator()(const char* name, const std::optional<std::string>& field) const {
    dict.push_back({name, field ? PtValue(*field) : PtValue()});
  }
  void operator()(const char* name, const std::optional<double>& field) const {
    dict.push_back({name, field ? PtValue(*field) : PtValue()});
  }
  void operator()(const char* name, Count<const std::int64_t> field) const {
    dict.push_back({name, field.value});
  }
  void operator()(const char* name, Count<const std::optional<std::int64_t>> field) const {
    dict.push_back({name, field.value ? PtValue(*field.value) : PtValue()});
  }
  void operator()(const char* name, const Tensors& field) const {
    dict.push_back({name, PtList(field.begin(), field.end())});
  }
  template <template <class> class Kind, class T>
  void operator()(const char* name, Kind<T> field) const {
    (*this)(name, field.value);
  }
};

// Sets fields from a dict; missing and invalid values become problems.
struct ReadFields {
  const PtValue& dict;
  const at::Tensor* parameter = nullptr;  // the parameter of the state
  std::int64_t all_elements = 0;          // in all parameters of the group
  std::vector<std::string>& problems;
  // Whether the state of a parameter in half precision is float32.
  bool has_float_state = false;

  void operator()(const char* name, double& field) const {
    if (const auto value = number(name)) field = *value;
  }
  void operator()(const char* name, bool& field) const {
    if (const auto value = number(name)) field = *value != 0;
  }
  void operator()(const char* name, std::int64_t& steps) const {
    if (const auto value = number(name)) steps = static_cast<std::int64_t>(*value);
  }
  template <class... Numbers>
  void operator()(const char* name, std::tuple<Numbers...>& field) const {
    const PtValue* value = dict.find(name);
    const auto* tuple = value != nullptr ? value->get_if<PtTuple>() : nullptr;
    if (tuple == nullptr || tuple->items.size() != sizeof...(Numbers) ||
        !std::ranges::all_of(tuple->items, [](const PtValue& item) { return item.number().has_value(); }))
      return lacks(name);
    auto item = tuple->items.begin();
    std::apply([&](auto&... numbers) { ((numbers = *(item++)->number()), ...); }, field);
  }
  void operator()(const char* name, at::Tensor& field) const {
    const PtValue* value = dict.find(name);
    const auto* tensor = value != nullptr ? value->get_if<at::Tensor>() : nullptr;
    if (tensor == nullptr) {
      lacks(name);
    } else {
      take_of_shape(name, parameter->sizes(), *tensor, field);
    }
  }
  template <class T>
  void operator()(const char* name, Reduced<T> field) const {
    const PtValue* value = dict.find(name);
    const auto* tensor = value != nullptr ? value->get_if<at::Tensor>() : nullptr;
    if (tensor == nullptr || parameter->dim() < -field.dimension) return;
    std::vector<std::int64_t> sizes = parameter->sizes().vec();
    sizes.erase(sizes.end() + field.dimension);
    take_of_shape(name, sizes, *tensor, field.value);
  }
  template <class T>
  void operator()(const char* name, Optional<T> field) const {
    const PtValue* value = dict.find(name);
    if (value != nullptr && !value->is_none()) (*this)(name, field.value);
  }
  void operator()(const char* name, std::optional<std::string>& field) const {
    const PtValue* value = dict.find(name);
    const auto* text = value != nullptr ? value->get_if<std::string>() : nullptr;
    field = text != nullptr ? std::optional(*text) : std::nullopt;
  }
  void operator()(const char* name, std::optional<double>& field) const {
    const PtValue* value = dict.find(name);
    field = value != nullptr ? value->number() : std::nullopt;
  }
  void operator()(const char* name, Count<std::int64_t> field) const { (*this)(name, field.value); }
  void operator()(const char* name, Count<std::optional<std::int64_t>> field) const {
    const PtValue* value = dict.find(name);
    const auto given = value != nullptr ? value->number() : std::nullopt;
    field.value = given ? std::optional(static_cast<std::int64_t>(*given)) : std::nullopt;
  }
  template <class T>
  void operator()(const char* name, Flat<T> field) const {
    take(name, all_elements, field.value);
  }
  template <class T>
  void operator()(const char* name, Scalar<T> field) const {
    take(name, 1, field.value);
  }

 private:
  at::Tensor own_copy(const at::Tensor& tensor) const {
    at::ScalarType type = parameter->is_floating_point() ? parameter->scalar_type() : tensor.scalar_type();
    if (has_float_state && at::isReducedFloatingType(type)) type = at::kFloat;
    return tensor.to(parameter->device(), type, /*non_blocking=*/false, /*copy=*/true);
  }

  void take_of_shape(const char* name, at::IntArrayRef sizes, const at::Tensor& tensor,
                     at::Tensor& field) const {
    if (tensor.sizes() == sizes) {
      field = own_copy(tensor);
    } else {
      problems.push_back(fmt::format("'{}' is [{}], the parameter is [{}]", name,
                                     fmt::join(tensor.sizes(), ", "), fmt::join(parameter->sizes(), ", ")));
    }
  }
  void take(const char* name, std::int64_t elements, at::Tensor& field) const {
    const PtValue* value = dict.find(name);
    if (value != nullptr && !value->is_none()) field = tensor_of(name, elements, *value);
  }
  void take(const char* name, std::int64_t elements, Tensors& field) const {
    const PtValue* value = dict.find(name);
    const auto* list = value != nullptr ? value->get_if<PtList>() : nullptr;
    if (list == nullptr) return;
    for (const PtValue& one : *list) field.push_back(tensor_of(name, elements, one));
  }
  // Python stores a plain number where a tensor is not needed.
  at::Tensor tensor_of(const char* name, std::int64_t elements, const PtValue& value) const {
    const auto* tensor = value.get_if<at::Tensor>();
    if (tensor == nullptr && elements == 1 && value.number())
      return at::full({}, *value.number(), parameter->options().requires_grad(false));
    if (tensor != nullptr && tensor->numel() == elements) return own_copy(*tensor);
    problems.push_back(fmt::format("'{}' must have {} elements, as many as the parameters", name, elements));
    return {};
  }

  std::optional<double> number(const char* name) const {
    const PtValue* value = dict.find(name);
    const auto given = value != nullptr ? value->number() : std::nullopt;
    if (!given) lacks(name);
    return given;
  }
  void lacks(const char* name) const {
    problems.push_back(fmt::format("has no '{}': it is the state of another optimizer", name));
  }
};

template <class Options>
constexpr bool kIsAdam =
    std::is_same_v<Options, torch::optim::AdamOptions> || std::is_same_v<Options, torch::optim::AdamWOptions>;

// Switches of Python's optimizers without a counterpart here. Sharded checkpoints are loaded only if every
// option is there.
template <class Options>
constexpr bool kHasCapturable = kIsAdam<Options> || std::is_same_v<Options, torch::optim::RMSpropOptions>;
template <class Options>
constexpr bool kHasFused = kIsAdam<Options> || std::is_same_v<Options, torch::optim::SGDOptions> ||
                           std::is_same_v<Options, torch::optim::AdagradOptions>;

template <class Options>
constexpr bool kIsAdafactor = std::is_same_v<Options, AdafactorOptions>;
// What transformers' has and acc's has not.
constexpr std::array kAdafactorSwitches = {"relative_step", "scale_parameter", "warmup_init"};

// Switches without an option here, as Python's optimizers have them by default.
template <class Options>
void write_switches(PtDict& options) {
  if constexpr (kIsAdafactor<Options>) {
    for (const char* name : kAdafactorSwitches) options.push_back({name, false});
    return;
  }
  if constexpr (std::is_same_v<Options, MuonOptions>) return;
  options.push_back({"maximize", false});
  options.push_back({"foreach", {}});
  options.push_back({"differentiable", false});
  if constexpr (kHasCapturable<Options>) options.push_back({"capturable", false});
  if constexpr (kHasFused<Options>) options.push_back({"fused", {}});
  if constexpr (kIsAdam<Options>)
    options.push_back({"decoupled_weight_decay", std::is_same_v<Options, torch::optim::AdamWOptions>});
}

template <class Kind>
PtValue write_state(const Optimizer& optimizer) {
  PtDict state;
  PtList groups;
  std::int64_t number = 0;
  for (const auto& group : optimizer.param_groups()) {
    PtDict options;
    visit_fields(static_cast<const typename Kind::Options&>(group.options()), WriteFields{options});
    write_switches<typename Kind::Options>(options);
    PtList numbers;
    for (const at::Tensor& parameter : group.params()) {
      const auto match = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (match != optimizer.state().end()) {
        PtDict fields;
        visit_fields(static_cast<const typename Kind::State&>(*match->second), WriteFields{fields});
        if (!fields.empty()) state.push_back({number, std::move(fields)});
      }
      numbers.emplace_back(number++);
    }
    options.push_back({"params", std::move(numbers)});
    groups.emplace_back(std::move(options));
  }
  return PtDict{{"state", std::move(state)}, {"param_groups", std::move(groups)}};
}

// The values that loading sets in the optimizer.
struct Loaded {
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options = {};
  std::vector<std::pair<void*, std::unique_ptr<torch::optim::OptimizerParamState>>> states = {};
};

// Reads an optimizer's state, and collects everything that does not fit.
template <class Kind>
class StateReader {
 public:
  StateReader(const Optimizer& optimizer, const PtValue& from, std::string where)
      : optimizer_(optimizer), from_(from), where_(std::move(where)) {}

  std::shared_ptr<Loaded> read() {
    const PtValue* groups = from_.find("param_groups");
    const auto* list = groups != nullptr ? groups->get_if<PtList>() : nullptr;
    const PtValue* states = from_.find("state");
    if (list == nullptr || states == nullptr) {
      add("", "is not the state of an optimizer");
    } else if (list->size() != optimizer_.param_groups().size()) {
      add("", fmt::format("has {} parameter groups, the optimizer {}", list->size(),
                          optimizer_.param_groups().size()));
    } else {
      states_ = states_by_number(*states);
      for (std::size_t i = 0; i < list->size(); ++i) read_group(i, (*list)[i]);
    }
    if (!problems_.empty()) throw Error(ErrorKind::config, std::move(problems_));
    return loaded_;
  }

 private:
  void add(const std::string& owner, const std::string& what) {
    problems_.push_back({owner.empty() ? what : owner + " " + what, where_, ""});
  }

  void read_group(std::size_t index, const PtValue& group) {
    const std::string name = fmt::format("parameter group {}", index);
    const auto& target = optimizer_.param_groups()[index];
    auto options = target.options().clone();
    std::vector<std::string> wrong;
    visit_fields(static_cast<typename Kind::Options&>(*options), ReadFields{group, nullptr, 0, wrong});
    check_switches(group, wrong);
    for (const std::string& what : wrong) add(name, what);
    loaded_->options.push_back(std::move(options));

    const PtValue* params = group.find("params");
    const auto* numbers = params != nullptr ? params->get_if<PtList>() : nullptr;
    const std::size_t count = numbers != nullptr ? numbers->size() : 0;
    if (count != target.params().size()) {
      add(name, fmt::format("has {} parameters, the optimizer's has {}", count, target.params().size()));
      return;
    }
    std::int64_t elements = 0;
    for (const at::Tensor& parameter : target.params()) elements += parameter.numel();
    for (std::size_t i = 0; i < count; ++i) read_parameter((*numbers)[i], target.params()[i], elements);
  }

  static void check_switches(const PtValue& group, std::vector<std::string>& wrong) {
    const auto is = [&](std::string_view name, bool value) {
      const PtValue* given = group.find(name);
      const auto* truth = given != nullptr ? given->get_if<bool>() : nullptr;
      return truth != nullptr && *truth == value;
    };
    if (is("maximize", true)) wrong.emplace_back("has maximize set, which LibTorch's optimizers lack");
    using Options = typename Kind::Options;
    if constexpr (kIsAdafactor<Options>) {
      for (const char* name : kAdafactorSwitches)
        if (is(name, true)) wrong.push_back(fmt::format("has {} set, which acc's Adafactor lacks", name));
    }
    if constexpr (kIsAdam<Options>) {
      constexpr bool kDecoupled = std::is_same_v<Options, torch::optim::AdamWOptions>;
      if (is("decoupled_weight_decay", !kDecoupled))
        wrong.emplace_back(kDecoupled ? "is the state of Adam, not of AdamW"
                                      : "is the state of AdamW, not of Adam");
    }
  }

  // LBFGS itself does not check that its history lists have the same length, at most history_size.
  void check_history(const typename Kind::State& state, std::vector<std::string>& wrong) const {
    if constexpr (std::is_same_v<typename Kind::State, torch::optim::LBFGSParamState>) {
      const auto& options = static_cast<const torch::optim::LBFGSOptions&>(*loaded_->options.back());
      const std::size_t length = state.old_dirs().size();
      if (length != state.old_stps().size() || length != state.ro().size() ||
          static_cast<std::int64_t>(length) > options.history_size())
        wrong.emplace_back("has a history that is longer than history_size, or incomplete");
    }
  }

  void read_parameter(const PtValue& number, const at::Tensor& parameter, std::int64_t all_elements) {
    const auto* id = number.get_if<std::int64_t>();
    const auto match = id != nullptr ? states_.find(*id) : states_.end();
    if (match == states_.end()) return;  // the parameter never had a gradient
    const PtValue& fields = *match->second;
    auto state = std::make_unique<typename Kind::State>();
    std::vector<std::string> wrong;
    constexpr bool kHasFloatState = std::is_same_v<typename Kind::State, AdafactorParamState>;
    visit_fields(*state, ReadFields{fields, &parameter, all_elements, wrong, kHasFloatState});
    check_history(*state, wrong);
    for (const std::string& what : wrong) add(fmt::format("parameter {}", *id), what);
    loaded_->states.emplace_back(parameter.unsafeGetTensorImpl(), std::move(state));
  }

  const Optimizer& optimizer_;
  const PtValue& from_;
  std::string where_;
  StatesByNumber states_ = {};
  std::vector<Problem> problems_ = {};
  std::shared_ptr<Loaded> loaded_ = std::make_shared<Loaded>();
};

}  // namespace

StatesByNumber states_by_number(const PtValue& states) {
  StatesByNumber by_number;
  const auto* entries = states.get_if<PtDict>();
  if (entries == nullptr) return by_number;
  for (const PtEntry& entry : *entries)
    if (const auto* number = entry.key.get_if<std::int64_t>()) by_number.try_emplace(*number, &entry.value);
  return by_number;
}

PtValue optimizer_state(const Optimizer& optimizer) {
  PtValue state;
  const bool known = with_kind(optimizer, [&]<class Kind>(Kind) { state = write_state<Kind>(optimizer); });
  if (!known) refuse_kind();
  return state;
}

std::function<void()> plan_optimizer_load(Optimizer& optimizer, const PtValue& state,
                                          const std::string& where) {
  std::shared_ptr<Loaded> loaded;
  const bool known = with_kind(
      optimizer, [&]<class Kind>(Kind) { loaded = StateReader<Kind>(optimizer, state, where).read(); });
  if (!known) refuse_kind();
  return [&optimizer, loaded] {
    for (std::size_t i = 0; i < loaded->options.size(); ++i)
      optimizer.param_groups()[i].set_options(std::move(loaded->options[i]));
    optimizer.state().clear();
    for (auto& [parameter, own] : loaded->states) optimizer.state()[parameter] = std::move(own);
  };
}

at::Tensor steps_tensor(double steps) {
  return at::full({}, steps, at::TensorOptions(steps <= kMaxFloatSteps ? at::kFloat : at::kDouble));
}

void replace_params(PtValue& group, PtList params) {
  for (PtEntry& entry : std::get<PtDict>(group.content)) {
    const auto* key = entry.key.get_if<std::string>();
    if (key != nullptr && *key == "params") {
      entry.value = std::move(params);
      return;
    }
  }
}

}  // namespace acc::detail
