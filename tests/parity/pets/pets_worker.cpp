// SPDX-License-Identifier: Apache-2.0
// What the pets example is made of, for a comparison with Python:
//
//   acc-pets-worker split SEED SIZE                         the files' numbers: to train on, then to evaluate
//   acc-pets-worker config WEIGHTS                          architecture, mean and standard deviation
//   acc-pets-worker compute WEIGHTS CLASSES DATA OUT        outputs and gradients for the images in DATA,
//   into OUT acc-pets-worker save WEIGHTS CLASSES OUT                the loaded network, into OUT
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <cstdio>
#include <string>
#include <vector>

#include "acc/checkpoint.hpp"
#include "acc/error.hpp"
#include "pretrained.hpp"
#include "resnet.hpp"
#include "split.hpp"

namespace {

void show_split(std::uint32_t seed, std::size_t size) {
  acc::ImageFiles files;
  for (std::size_t i = 0; i < size; ++i) {
    files.files.push_back(std::to_string(i));
    files.labels.push_back(0);
  }
  const Split both = split(files, seed);
  for (const auto& part : {both.train, both.eval}) {
    for (const auto& file : part.files) std::printf("%s ", file.c_str());
    std::printf("\n");
  }
}

void show_config(const char* weights) {
  const PretrainedConfig config = read_pretrained_config(weights);
  std::printf("%s", config.architecture.c_str());
  for (const float value : config.normalize.mean) std::printf(" %g", double(value));
  for (const float value : config.normalize.std) std::printf(" %g", double(value));
  std::printf("\n");
}

ResNetD load(const char* weights, const char* classes) {
  ResNetD net(read_pretrained_config(weights).architecture, std::stol(classes));
  std::printf("%s\n", load_pretrained(*net, weights) ? "all" : "without the classifier");
  return net;
}

void compute(ResNetD net, const char* data, const char* out) {
  const acc::NamedTensors batch = acc::read_safetensors(data).tensors;
  acc::NamedTensors results;
  net->eval();
  {
    const at::NoGradGuard no_grad;
    results["eval"] = net(batch.at("images"));
  }
  net->train();
  const at::Tensor logits = net(batch.at("images"));
  at::cross_entropy_loss(logits, batch.at("labels")).backward();
  results["train"] = logits.detach();
  for (const auto& parameter : net->named_parameters())
    results["gradient." + parameter.key()] = parameter.value().grad();
  acc::write_safetensors(out, {.tensors = results});
}

void run(const std::vector<std::string>& words) {
  const auto word = [&](std::size_t index) { return words.at(index).c_str(); };
  if (words.at(0) == "split") {
    show_split(static_cast<std::uint32_t>(std::stoul(words.at(1))), std::stoul(words.at(2)));
  } else if (words.at(0) == "config") {
    show_config(word(1));
  } else if (words.at(0) == "compute") {
    compute(load(word(1), word(2)), word(3), word(4));
  } else {
    acc::save_model_file(*load(word(1), word(2)), word(3));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  run({argv + 1, argv + argc});
  return 0;
} catch (const acc::Error& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return acc::exit_code(error.kind());
}
