// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/parameter_agreement.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <unordered_map>

#include "acc/base/text.hpp"
#include "acc/runtime/comm/operations.hpp"

namespace acc::detail {
namespace {

// ASCII's unit and record separators: LibTorch allows them in a parameter's name, but they are not used in
// practice.
constexpr char kFieldEnd = '\x1f';
constexpr char kLineEnd = '\x1e';

// Gradients are averaged in the order in which the memory has them.
std::string strides_of(const at::Tensor& parameter) {
  if (parameter.layout() != at::kStrided || parameter.is_contiguous()) return "";
  return fmt::format(" with strides [{}]", fmt::join(parameter.strides(), ", "));
}

std::string form_of(const at::Tensor& tensor, bool has_sparse_gradient = false) {
  const std::string_view gradient = !tensor.requires_grad() ? " without gradient"
                                    : has_sparse_gradient   ? " with sparse gradient"
                                                            : "";
  return fmt::format("{} [{}]{}", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "),
                     gradient);
}

template <class Embedding>
const at::Tensor* sparse_weight(const torch::nn::Module& module) {
  const auto* embedding = dynamic_cast<const Embedding*>(&module);
  return embedding != nullptr && embedding->options.sparse() ? &embedding->weight : nullptr;
}

std::string pack(const std::vector<ParameterInfo>& parameters) {
  std::string text;
  for (const auto& [name, form] : parameters) text += name + kFieldEnd + form + kLineEnd;
  return text;
}

std::vector<ParameterInfo> unpack(std::string_view text) {
  std::vector<ParameterInfo> parameters;
  for (const std::string& line : split(text, kLineEnd)) {
    const std::size_t end = line.find(kFieldEnd);
    if (end != std::string::npos) parameters.push_back({line.substr(0, end), line.substr(end + 1)});
  }
  return parameters;
}

// The elements' bits, reinterpreted as integers of the same size.
at::Tensor bits_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  const at::Tensor flat = dense.as_strided({dense.numel()}, {1});
  switch (flat.element_size()) {
    case 1:
      return flat.view(at::kByte);
    case 2:
      return flat.view(at::kShort);
    case 4:
      return flat.view(at::kInt);
    default:
      return flat.view(at::kLong);
  }
}

Error disagreement(std::size_t rank, const ParameterInfo* first, const ParameterInfo* other) {
  const std::string name = first != nullptr ? first->name : other->name;
  const auto describe = [](const ParameterInfo* parameter) {
    return parameter != nullptr ? fmt::format("'{}' of {}", parameter->name, parameter->form) : "none";
  };
  return Error({.what = fmt::format("is not the same on all processes: rank 0 has {}, rank {} has {}",
                                    describe(first), rank, describe(other)),
                .where = fmt::format("parameter '{}'", name),
                .hint = "every process must build the same model"});
}

}  // namespace

std::vector<NamedParameter> distinct_parameters(const torch::nn::Module& module) {
  std::vector<NamedParameter> parameters;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (seen.insert(item.value().unsafeGetTensorImpl()).second)
      parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

std::unordered_set<const c10::TensorImpl*> sparse_parameters(const torch::nn::Module& module) {
  std::unordered_set<const c10::TensorImpl*> parameters;
  const auto add = [&](const torch::nn::Module& layer) {
    for (const at::Tensor* weight :
         {sparse_weight<torch::nn::EmbeddingImpl>(layer), sparse_weight<torch::nn::EmbeddingBagImpl>(layer)})
      if (weight != nullptr) parameters.insert(weight->unsafeGetTensorImpl());
  };
  add(module);
  for (const auto& layer : module.modules(/*include_self=*/false)) add(*layer);
  return parameters;
}

namespace {

struct Access : torch::nn::Module {
  static const auto& parameters_of(const torch::nn::Module& module) { return module.*(&Access::parameters_); }
};

// Without the names, whose texts would take much longer.
template <class Function>
void for_each_parameter(const torch::nn::Module& module, const Function& function) {
  for (const auto& item : Access::parameters_of(module)) function(item.value().unsafeGetTensorImpl());
  for (const auto& child : module.children()) for_each_parameter(*child, function);
}

}  // namespace

KnownParameters::KnownParameters(std::shared_ptr<const torch::nn::Module> module, Scope scope)
    : module_(std::move(module)), scope_(scope), parameters_(distinct_parameters(*module_)) {
  for_each_parameter(*module_,
                     [this](const c10::TensorImpl* parameter) { registered_.push_back(parameter); });
}

std::string KnownParameters::exchanged() const {
  auto expected = registered_.begin();
  bool is_same = true;
  for_each_parameter(*module_, [&](const c10::TensorImpl* parameter) {
    is_same = is_same && expected != registered_.end() && *expected == parameter;
    if (is_same) ++expected;
  });
  if (is_same && expected == registered_.end()) return "";
  const std::vector<NamedParameter> now = distinct_parameters(*module_);
  const std::unordered_map<std::string, at::Tensor> by_name(now.begin(), now.end());
  for (const auto& [name, parameter] : parameters_) {
    const auto other = by_name.find(name);
    if (other == by_name.end() || other->second.is_same(parameter)) continue;
    if (scope_ == Scope::all || parameter.requires_grad() || other->second.requires_grad()) return name;
  }
  return "";
}

void KnownParameters::require() const {
  const std::string name = exchanged();
  if (name.empty()) return;
  throw Error(
      {.what = "is another one than when the model was prepared, and would be trained on each process alone",
       .where = fmt::format("parameter '{}'", name),
       .hint = "replace modules before prepare, or load values into the parameters that are there"});
}

std::vector<ParameterInfo> describe_parameters(const torch::nn::Module& module) {
  std::vector<ParameterInfo> parameters;
  const auto sparse = sparse_parameters(module);
  for (const auto& item : module.named_parameters())
    parameters.push_back(
        {item.key(), form_of(item.value(), sparse.contains(item.value().unsafeGetTensorImpl())) +
                         strides_of(item.value())});
  for (const auto& item : module.named_buffers()) parameters.push_back({item.key(), form_of(item.value())});
  return parameters;
}

void require_own_memory(const char* kind, const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  for (const auto& item : tensors) {
    const at::Tensor& tensor = item.value();
    const bool has_memory = tensor.defined() && tensor.layout() == at::kStrided;
    if (!has_memory || at::has_internal_overlap(tensor) != at::MemOverlap::Yes) continue;
    throw Error(
        {.what = fmt::format("is [{}] with strides [{}]: its elements share memory, so rank 0's values "
                             "cannot be written to it",
                             fmt::join(tensor.sizes(), ", "), fmt::join(tensor.strides(), ", ")),
         .where = fmt::format("{} '{}'", kind, item.key()),
         .hint = "register a copy of what expand() returned, its clone()"});
  }
}

std::optional<Error> find_disagreement(const std::vector<std::vector<ParameterInfo>>& by_rank) {
  std::size_t longest = 0;
  for (const auto& parameters : by_rank) longest = std::max(longest, parameters.size());
  const auto at = [&](std::size_t rank, std::size_t index) {
    return index < by_rank[rank].size() ? &by_rank[rank][index] : nullptr;
  };
  for (std::size_t index = 0; index < longest; ++index) {
    const ParameterInfo* first = at(0, index);
    for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
      const ParameterInfo* other = at(rank, index);
      if (first == nullptr || other == nullptr || *first != *other) return disagreement(rank, first, other);
    }
  }
  return std::nullopt;
}

namespace {

template <class Gather>
void compare_with_others(const std::vector<ParameterInfo>& parameters, ProcessGroup& group, Gather gather) {
  const std::string text = pack(parameters);
  const at::Tensor own = at::full({1}, static_cast<std::int64_t>(fingerprint(text)), at::kLong);
  const at::Tensor all = gather(own);
  if (all.equal(own.expand_as(all))) return;

  // Exchanges the names only now that a difference is known.
  std::vector<std::vector<ParameterInfo>> by_rank;
  for (const std::string& from_rank : gather_texts({text}, &group)) by_rank.push_back(unpack(from_rank));
  if (const auto error = find_disagreement(by_rank)) throw Error(*error);
}

}  // namespace

void require_same_parameters(const torch::nn::Module& module, ProcessGroup& group) {
  compare_with_others(describe_parameters(module), group,
                      [&](const at::Tensor& own) { return group.all_gather(own); });
}

void require_same_parameters(const std::vector<ParameterInfo>& own, ProcessGroup& group,
                             std::string_view doing) {
  compare_with_others(own, group,
                      [&](const at::Tensor& hash) { return group.all_gather_to_compare(hash, doing); });
}

namespace {

// A sum of the elements times odd numbers that differ by the position, modulo 2^64: what changes places is
// another sum, and what grows does not balance what shrinks.
at::Tensor checksum(const at::Tensor& bits) {
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20U;
  constexpr auto kFactor = static_cast<std::int64_t>(0x9e3779b97f4a7c16U);  // even, by the golden ratio
  at::Tensor sum = at::zeros({}, bits.options().dtype(at::kLong));
  for (std::int64_t begin = 0; begin < bits.numel(); begin += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, bits.numel() - begin);
    const at::Tensor factors = at::arange(begin, begin + count, sum.options()) * kFactor + 1;
    sum += (bits.narrow(0, begin, count).to(at::kLong) * factors).sum();
  }
  return sum;
}

}  // namespace

at::Tensor checksums(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  for (const at::Tensor& tensor : tensors) sums.push_back(checksum(bits_of(tensor)).cpu());
  return sums.empty() ? at::zeros({0}, at::kLong) : at::stack(sums);
}

void require_equal_parameters(const std::vector<std::string>& names, const std::vector<at::Tensor>& tensors,
                              ProcessGroup& group) {
  const at::Tensor all = group.all_gather(checksums(tensors));
  const at::Tensor differs = all.ne(all[0]);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<int> ranks;
    for (int rank = 1; rank < group.size(); ++rank) {
      if (differs[rank][static_cast<std::int64_t>(i)].item<bool>()) ranks.push_back(rank);
    }
    if (ranks.empty()) continue;
    throw Error({.what = fmt::format("its values on {} differ from those on rank 0", name_ranks(ranks)),
                 .where = fmt::format("parameter '{}'", names[i]),
                 .hint = "the processes' models have diverged: something changes the parameter on each "
                         "process separately"});
  }
}

}  // namespace acc::detail
