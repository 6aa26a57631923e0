// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/dcp_optimizer_state.hpp"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <map>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/dcp_metadata.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "acc/runtime/checkpoint/parameter_names.hpp"
#include "acc/runtime/checkpoint/torch_types.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOptimizer = "optimizer";
constexpr const char* kState = "state";
constexpr const char* kGroups = "param_groups";
// The only field of a state that has one value for all elements of a parameter.
constexpr const char* kStep = "step";

std::vector<std::string> state_path(const std::string& parameter, const std::string& field) {
  return {kOptimizer, kState, parameter, field};
}

// Adds the range of one field of the state of an optimizer's parameter.
void add_field(const std::string& field, const at::Tensor& value, const ParameterRange& range,
               std::vector<TensorRange>& ranges) {
  const std::vector<std::string> path = state_path(range.name, field);
  if (field != kStep) {
    ranges.push_back({.path = path, .shape = range.shape, .begin = range.begin, .elements = value.flatten()});
  } else if (range.begin == 0) {
    ranges.push_back(whole_range(path, value));
  }
}

PtList& groups_in(PtValue& state) {
  auto& dict = std::get<PtDict>(state.content);
  const auto groups = std::ranges::find_if(
      dict, [](const PtEntry& entry) { return *entry.key.get_if<std::string>() == kGroups; });
  return std::get<PtList>(groups->value.content);
}

// Reads the state from one checkpoint.
class ShardedStateReader {
 public:
  ShardedStateReader(const fs::path& folder, const torch::optim::Optimizer& optimizer,
                     const ShardedParameters& parameters)
      : folder_(folder),
        optimizer_(optimizer),
        parameters_(parameters),
        metadata_(read_dcp_metadata(complete_folder(folder))) {
    for (const auto& [name, tensor] : metadata_.tensors) {
      const DcpPath& path = tensor.path;
      if (path.size() == 4 && path[0] == DcpPath::value_type(kOptimizer) &&
          path[1] == DcpPath::value_type(kState) && path[2].index() == 0 && path[3].index() == 0)
        fields_[std::get<std::string>(path[2])][std::get<std::string>(path[3])] = &tensor;
    }
  }

  PtValue read() {
    PtList groups = read_groups();
    PtDict state;
    std::vector<at::Tensor> parameters;
    for (const auto& group : optimizer_.param_groups())
      parameters.insert(parameters.end(), group.params().begin(), group.params().end());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& range = parameters_.ranges.at(i);
      PtDict fields = range ? make_fields(*range, parameters[i].sizes()) : PtDict();
      if (!fields.empty()) state.push_back({static_cast<std::int64_t>(i), std::move(fields)});
    }
    load_sharded(folder_, ranges_);
    return PtDict{{kState, std::move(state)}, {kGroups, std::move(groups)}};
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { refuse_file(folder_, what); }

  // The parameter groups, with numbers for this process's parameters instead of names.
  PtList read_groups() const {
    const PtDict objects = read_sharded_objects(folder_);
    const PtValue content(objects);
    const PtValue* optimizer = content.find(kOptimizer);
    const PtValue* groups = optimizer != nullptr ? optimizer->find(kGroups) : nullptr;
    const auto* list = groups != nullptr ? groups->get_if<PtList>() : nullptr;
    if (list == nullptr) refuse("is not the state of an optimizer: it has no param_groups");
    if (list->size() != parameters_.names.size()) {
      refuse(
          fmt::format("has {} parameter groups, the optimizer {}", list->size(), parameters_.names.size()));
    }
    PtList result = *list;
    std::int64_t number = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      require_names(i, result[i], parameters_.names[i], folder_.string());
      PtList numbers;
      for (std::size_t remaining = optimizer_.param_groups()[i].params().size(); remaining > 0; --remaining)
        numbers.emplace_back(number++);
      replace_params(result[i], std::move(numbers));
    }
    return result;
  }

  // Memory for the state of an optimizer's parameter, and the ranges to load into it.
  PtDict make_fields(const ParameterRange& range, c10::IntArrayRef shape) {
    PtDict fields;
    for (const auto& [field, saved] : fields_[range.name]) {
      const at::TensorOptions type(scalar_type_of(*saved->dtype));
      const at::Tensor value = at::empty(field == kStep ? c10::IntArrayRef() : shape, type);
      const std::vector<std::string> path = state_path(range.name, field);
      ranges_.push_back(
          field == kStep
              ? whole_range(path, value)
              : TensorRange{
                    .path = path, .shape = range.shape, .begin = range.begin, .elements = value.view({-1})});
      fields.push_back({field, value});
    }
    return fields;
  }

  fs::path folder_;
  const torch::optim::Optimizer& optimizer_;
  const ShardedParameters& parameters_;
  DcpMetadata metadata_;
  std::map<std::string, std::map<std::string, const DcpTensor*>> fields_ = {};
  std::vector<TensorRange> ranges_ = {};
};

}  // namespace

ShardedState dcp_optimizer_state(const torch::optim::Optimizer& optimizer,
                                 const ShardedParameters& parameters,
                                 const std::vector<double>& initial_rates) {
  PtValue state = optimizer_state(optimizer);
  ShardedState result;
  for (const PtEntry& entry : *state.find(kState)->get_if<PtDict>()) {
    const auto number = static_cast<std::size_t>(*entry.key.get_if<std::int64_t>());
    for (const PtEntry& field : *entry.value.get_if<PtDict>()) {
      const auto& range = parameters.ranges.at(number);
      const auto* value = field.value.get_if<at::Tensor>();
      if (range && value != nullptr)
        add_field(*field.key.get_if<std::string>(), *value, *range, result.ranges);
    }
  }
  PtList groups = groups_in(state);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    replace_params(groups[i], {parameters.names.at(i).begin(), parameters.names.at(i).end()});
    if (i < initial_rates.size())
      std::get<PtDict>(groups[i].content).push_back({"initial_lr", initial_rates[i]});
  }
  result.objects = {{kOptimizer, PtDict{{kGroups, std::move(groups)}}}};
  return result;
}

PtValue read_dcp_optimizer_state(const fs::path& folder, const torch::optim::Optimizer& optimizer,
                                 const ShardedParameters& parameters) {
  return ShardedStateReader(folder, optimizer, parameters).read();
}

}  // namespace acc::detail
