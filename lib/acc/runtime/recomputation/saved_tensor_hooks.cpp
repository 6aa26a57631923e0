// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/recomputation/saved_tensor_hooks.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>

#include <atomic>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace acc::detail {
namespace {

thread_local std::vector<const Pack*> packs;
// Of TorchScript, without hooks. Its first calls are optimized otherwise than later ones, and save other
// tensors.
thread_local bool optimizes_scripts = true;

class Hooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Hooks(const Pack& pack) : pack_(pack) {}
  // Called once, at once.
  void call_pack_hook(const at::Tensor& tensor) override { unpack_ = pack_(tensor); }
  at::Tensor call_unpack_hook() override { return unpack_(); }

 private:
  const Pack& pack_;
  Unpack unpack_ = {};
};

// A shared_ptr, and an intrusive_ptr from LibTorch 2.15 on.
using NodePointer = decltype(torch::autograd::Edge::function);

// LibTorch asks its engine for the hooks of each tensor that is saved. This one has them and leaves all else
// to the engine before it, LibTorch's or Python's: LibTorch starts the threads of one engine only.
class HookedEngine final : public torch::autograd::Engine {
 public:
  HookedEngine() = default;
  ~HookedEngine() override { stop(); }
  HookedEngine(const HookedEngine&) = delete;
  HookedEngine& operator=(const HookedEngine&) = delete;

  void put_before(torch::autograd::Engine& engine) { engine_ = &engine; }

  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs, bool keep_graph,
                                         bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    return engine_.load()->execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& task, NodePointer root,
      torch::autograd::InputBuffer&& buffer) override {
    return engine_.load()->execute_with_graph_task(task, std::move(root), std::move(buffer));
  }
  // Not called. Inherited, it would be a function that another LibTorch lacks, and the dynamic linker would
  // end the program before require_compiled_torch can report that.
  void thread_on_exception(const std::shared_ptr<torch::autograd::GraphTask>& task, const NodePointer& node,
                           std::exception& error) override {
    engine_.load()->thread_on_exception(task, node, error);
  }
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return engine_.load()->make_anomaly_metadata();
  }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (packs.empty()) return engine_.load()->get_default_saved_variable_hooks();
    return std::make_unique<Hooks>(*packs.back());
  }

 private:
  std::atomic<torch::autograd::Engine*> engine_ = nullptr;
};

HookedEngine& hooked_engine() {
  static HookedEngine engine;
  return engine;
}

// Again, after Python's torch was imported.
void use_hooked_engine() {
  torch::autograd::Engine& present = torch::autograd::Engine::get_default_engine();
  if (&present == &hooked_engine()) return;
  hooked_engine().put_before(present);
  torch::autograd::set_default_engine_stub([]() -> torch::autograd::Engine& { return hooked_engine(); });
}

}  // namespace

bool has_saved_tensor_hooks() {
  return !packs.empty();
}

SavedTensorHooks::SavedTensorHooks(Pack pack) : pack_(std::move(pack)) {
  use_hooked_engine();
  if (packs.empty()) optimizes_scripts = torch::jit::getGraphExecutorOptimize();
  torch::jit::setGraphExecutorOptimize(false);
  packs.push_back(&pack_);
}

SavedTensorHooks::~SavedTensorHooks() {
  packs.pop_back();
  if (packs.empty()) torch::jit::setGraphExecutorOptimize(optimizes_scripts);
}

}  // namespace acc::detail
