// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/modules/script_module.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/optim/sgd.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
#include "acc/runtime/parallel/sync_batch_norm.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/trainer/trainer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/lone_group.hpp"
#include "support/temporary_folder.hpp"

namespace script_module_test {

using acc::ScriptModule;
using acc::test::error_of;
using Catch::Matchers::Contains;

// What torch.jit.script makes of a layer with a weight, a dropout and a count.
torch::jit::Module layer() {
  torch::jit::Module layer("Layer");
  layer.register_attribute("training", c10::BoolType::get(), true);
  layer.register_parameter("weight", at::ones({2, 3}).requires_grad_(), /*is_buffer=*/false);
  layer.register_buffer("calls", at::zeros({}));
  layer.define(R"(
    def forward(self, x):
        if self.training:
            self.calls.add_(1)
        return torch.matmul(x, self.weight.t())
  )");
  return layer;
}

// A network of it and a frozen weight.
torch::jit::Module network() {
  torch::jit::Module net("Net");
  net.register_attribute("training", c10::BoolType::get(), true);
  net.register_module("layer", layer());
  net.register_parameter("scale", at::ones({2}), /*is_buffer=*/false);
  net.define(R"(
    def forward(self, x):
        return self.layer.forward(x) * self.scale
    def encode(self, x, by: float):
        return self.layer.forward(x) * by
    def both(self, x):
        return self.layer.forward(x), x
    def named(self, x) -> Dict[str, Tensor]:
        return {"logits": self.layer.forward(x), "inputs": x}
  )");
  return net;
}

std::vector<std::string> keys(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  return tensors.keys();
}

TEST_CASE("script module: a script's tensors are the module's, under Python's names", "[runtime]") {
  const torch::jit::Module script = network();
  ScriptModule net(script);
  CHECK(keys(net->named_parameters()) == std::vector<std::string>{"scale", "layer.weight"});
  CHECK(keys(net->named_buffers()) == std::vector<std::string>{"layer.calls"});
  CHECK(net->named_parameters()["layer.weight"].is_same(
      script.attr("layer").toModule().attr("weight").toTensor()));
  CHECK(net->named_parameters()["layer.weight"].requires_grad());
  CHECK_FALSE(net->named_parameters()["scale"].requires_grad());
}

TEST_CASE("script module: what an optimizer does to a script's parameters is what it computes with",
          "[runtime]") {
  ScriptModule net(network());
  torch::optim::SGD sgd(net->parameters(), 0.5);
  const at::Tensor x = at::ones({1, 3});
  net->forward(x).sum().backward();
  sgd.step();
  CHECK(net->forward(x).equal(at::ones({1, 2}) * 1.5));
}

TEST_CASE("script module: train and eval reach the script's layers, and one layer alone", "[runtime]") {
  ScriptModule net(network());
  const at::Tensor x = at::ones({1, 3});
  const auto calls = [&] { return net->named_buffers()["layer.calls"].item<double>(); };
  net->forward(x);
  CHECK(calls() == 1);
  net->eval();
  net->forward(x);
  CHECK(calls() == 1);
  net->children()[0]->train();
  CHECK_FALSE(net->is_training());
  net->forward(x);
  CHECK(calls() == 2);
}

TEST_CASE("script module: a script that was saved for evaluation begins so", "[runtime]") {
  torch::jit::Module script = network();
  script.eval();
  ScriptModule net(script);
  CHECK_FALSE(net->is_training());
  CHECK_FALSE(net->children()[0]->is_training());
}

TEST_CASE("script module: a script's methods return tensors, tuples and maps", "[runtime]") {
  ScriptModule net(network());
  const at::Tensor x = at::ones({1, 3});
  CHECK(net->call<at::Tensor>("encode", x, 2.0).equal(at::ones({1, 2}) * 6));
  const auto [logits, inputs] = net->call<std::tuple<at::Tensor, at::Tensor>>("both", x);
  CHECK(inputs.equal(x));
  const auto named = net->call<std::map<std::string, at::Tensor>>("named", x);
  CHECK(named.at("logits").equal(logits));
}

// A layer that assigns new tensors to its attributes.
torch::jit::Module assigning(const std::string& forward) {
  torch::jit::Module script("Assigning");
  script.register_parameter("weight", at::ones({1}).requires_grad_(), /*is_buffer=*/false);
  script.register_buffer("count", at::zeros({}));
  script.define(forward);
  return script;
}

TEST_CASE("script module: a buffer to which the script assigns is the new one", "[runtime]") {
  torch::jit::Module outer("Outer");
  outer.register_module("inner", assigning(R"(
    def forward(self, x):
        self.count = self.count + 1
        return x * self.weight
  )"));
  outer.define(R"(
    def forward(self, x):
        return self.inner.forward(x)
  )");
  ScriptModule net(outer);
  net->forward(at::ones({1}));
  net->forward(at::ones({1}));
  CHECK(net->named_buffers()["inner.count"].item<double>() == 2);
}

TEST_CASE("script module: buffers are followed when the script throws, and through None", "[runtime]") {
  torch::jit::Module script("Counting");
  script.register_parameter("weight", at::ones({1}).requires_grad_(), /*is_buffer=*/false);
  script.register_attribute("count", c10::OptionalType::ofTensor(), at::zeros({}), /*is_param=*/false,
                            /*is_buffer=*/true);
  script.define(R"(
    def forward(self, x, clear: bool):
        self.count = x.sum()
        if clear:
            self.count = None
        assert x.size(0) == 1
        return x * self.weight
  )");
  ScriptModule net(script);
  CHECK_THROWS(net->forward(at::ones({2}), false));
  CHECK(net->named_buffers()["count"].item<double>() == 2);
  net->forward(at::ones({1}), true);
  CHECK(keys(net->named_buffers()).empty());
  net->forward(at::ones({1}), false);
  CHECK(net->named_buffers()["count"].item<double>() == 1);
}

TEST_CASE("script module: maps and missing tensors are arguments", "[runtime]") {
  torch::jit::Module script("Choosing");
  script.register_parameter("weight", at::ones({1}).requires_grad_(), /*is_buffer=*/false);
  script.define(R"(
    def forward(self, named: Dict[str, Tensor], scale: Optional[Tensor]):
        x = named["x"] * self.weight
        return x if scale is None else x * scale
  )");
  ScriptModule net(script);
  const std::map<std::string, at::Tensor> named{{"x", at::ones({1})}};
  CHECK(net->forward(named, at::Tensor()).item<double>() == 1);
  CHECK(net->forward(named, at::ones({1}) * 3).item<double>() == 3);
}

TEST_CASE("script module: a script without parameters is refused", "[runtime]") {
  torch::jit::Module script("Frozen");
  script.define(R"(
    def forward(self, x):
        return x
  )");
  CHECK_THAT(error_of([&] { ScriptModule net(script); }), Contains("Frozen: has no parameters to train"));
}

TEST_CASE("script module: what would not see all that a script computes refuses it", "[runtime]") {
  torch::jit::Module norm("BatchNorm2d");
  norm.register_parameter("weight", at::ones({1}).requires_grad_(), /*is_buffer=*/false);
  torch::jit::Module outer("Outer");
  outer.register_module("norm", norm);
  const ScriptModule net(outer);
  CHECK_THAT(error_of([&] { acc::convert_sync_batchnorm(*net.ptr()); }),
             Contains("norm: is a BatchNorm2d of a Python model, which cannot be synchronized"));
  CHECK_THAT(error_of([&] { acc::detail::ShardedModule(net.ptr(), acc::test::lone_group(), {}); }),
             Contains("Outer: is a TorchScript model, which cannot be sharded"));
}

TEST_CASE("script module: a script that replaces a parameter is refused", "[runtime]") {
  ScriptModule net(assigning(R"(
    def forward(self, x):
        self.weight = self.weight * 2
        return x * self.weight
  )"));
  CHECK_THAT(error_of([&] { net->forward(at::ones({1})); }),
             Contains("Assigning, parameter 'weight': was replaced by the script"));
}

TEST_CASE("script module: a prepared one gives float32 in bf16, in every form, and is saved", "[runtime]") {
  using Named = std::map<std::string, at::Tensor>;
  const acc::test::TemporaryFolder folder;
  torch::jit::Module script = network();
  script.define(R"(
    def forward_named(self, x) -> Dict[str, Tensor]:
        return {"logits": self.layer.forward(x)}
  )");
  struct NamedNetImpl : acc::ScriptModuleImpl<Named> {
    using ScriptModuleImpl::ScriptModuleImpl;
    Named forward(const at::Tensor& x) { return call<Named>("forward_named", x); }
  };
  acc::Accelerator accelerator({.mixed_precision = acc::MixedPrecision::bf16});
  auto net = std::make_shared<NamedNetImpl>(script);
  auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.5));
  const Named named = model(at::ones({1, 3}));
  CHECK(named.at("logits").scalar_type() == at::kFloat);
  accelerator.backward(named.at("logits").sum());
  optimizer.step();
  accelerator.save_state(folder.path() / "state");
  {
    const at::NoGradGuard no_grad;
    net->named_parameters()["layer.weight"].zero_();
  }
  accelerator.load_state(folder.path() / "state");
  CHECK(net->forward(at::ones({1, 3})).at("logits").equal(at::ones({1, 2}) * 1.5));
}

TEST_CASE("script module: a Trainer trains it", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  torch::jit::Module line("Line");
  line.register_attribute("training", c10::BoolType::get(), true);
  line.register_parameter("weight", at::zeros({1}).requires_grad_(), /*is_buffer=*/false);
  line.define(R"(
    def forward(self, x):
        return x * self.weight
  )");
  ScriptModule net(line);
  acc::TrainingArguments arguments;
  arguments.output_dir = folder.path();
  arguments.num_train_epochs = 1;
  arguments.per_device_train_batch_size = 4;
  arguments.learning_rate = 0.1;
  arguments.disable_tqdm = true;
  acc::Trainer trainer(net, arguments, acc::TensorDataset(at::ones({32, 1}), at::ones({32, 1}) * 2));
  trainer.train();
  CHECK(net->named_parameters()["weight"].item<double>() > 0.2);
}

TEST_CASE("script module: a script in a file, saved after training, is read again", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  ScriptModule net(network());
  {
    const at::NoGradGuard no_grad;
    net->named_parameters()["layer.weight"].fill_(3);
  }
  net->script().save((folder.path() / "net.pt").string());
  const ScriptModule again(folder.path() / "net.pt");
  CHECK(again->named_parameters()["layer.weight"].equal(at::ones({2, 3}) * 3));
  CHECK(again->named_parameters()["layer.weight"].requires_grad());
  CHECK_FALSE(again->named_parameters()["scale"].requires_grad());
  CHECK(keys(again->named_buffers()) == std::vector<std::string>{"layer.calls"});
}

TEST_CASE("script module: what is no script is refused by the file's name", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto error_of_reading = [&](const std::filesystem::path& file) {
    return error_of([&] { ScriptModule<> net(file); });
  };
  CHECK_THAT(error_of_reading(folder.path() / "none.pt"), Contains("none.pt: does not exist"));
  CHECK_THAT(error_of_reading(folder.write("text.pt", "no archive")),
             Contains("text.pt: is not a model that TorchScript can read"));
}

TEST_CASE("script module: a call that does not fit the script is refused", "[runtime]") {
  ScriptModule net(network());
  const at::Tensor x = at::ones({1, 3});
  CHECK_THAT(error_of([&] { net->call<at::Tensor>("decode", x); }), Contains("Net: has no method 'decode'"));
  CHECK_THAT(error_of([&] { net->call<at::Tensor>("both", x); }),
             Contains("Net.both: returns Tuple[Tensor, Tensor], and the program expects Tensor"));
  CHECK_THAT(error_of([&] { net->forward(x, x); }), Contains("Net.forward: Expected at most 2 argument(s)"));
  CHECK_THAT(error_of([&] { net->forward(1.0); }),
             Contains("Net.forward: forward() Expected a value of type 'Tensor"));
  ScriptModule<std::tuple<at::Tensor, at::Tensor>> pair(network());
  CHECK_THAT(error_of([&] { pair->forward(x); }),
             Contains("Net.forward: returns Tensor, and the program expects Tuple[Tensor, Tensor]"));
}

}  // namespace script_module_test
