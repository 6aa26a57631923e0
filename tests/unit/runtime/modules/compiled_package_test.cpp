// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/modules/compiled_package.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/checkpoint/zip_writer.hpp"
#include "support/catch.hpp"
#include "support/compiled_description.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace compiled_package_test {

using acc::detail::CompiledHost;
using acc::test::compiled_description;
using acc::test::error_of;
using acc::test::TemporaryFolder;
using Catch::Matchers::Contains;
using nlohmann::json;

acc::CompiledDescription package() {
  return acc::parse_compiled_description(compiled_description().dump());
}

std::uint32_t checksum_of(const std::string& text) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

// The differences are those of the checksums to the right ones.
void write_package(const std::filesystem::path& file, json content, const acc::NamedTensors& tensors,
                   std::uint32_t difference = 0, std::uint32_t difference_of_description = 0) {
  const TemporaryFolder folder;
  acc::write_safetensors(folder.path() / "weights", {.tensors = tensors});
  const std::string weights = folder.read("weights");
  content["checksum"] = checksum_of(weights) + difference;
  const std::string text = content.dump();
  acc::detail::ZipWriter zip;
  const std::string checksum = std::to_string(checksum_of(text) + difference_of_description);
  zip.add("net/data/extra/acc.json", text);
  zip.add("net/data/extra/acc.json.crc32", checksum);
  zip.add("net/data/extra/weights.safetensors", weights);
  acc::replace_file(file, zip.finish());
}

const acc::NamedTensors& tensors() {
  static const acc::NamedTensors all = {
      {"layer.weight", at::ones({1, 2})}, {"scale", at::ones({1})}, {"count", at::zeros({})}};
  return all;
}

TEST_CASE("compiled package: its weights are read from the file", "[runtime]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "net.pt2";
  write_package(file, compiled_description(), tensors());
  CHECK(acc::detail::read_compiled_package(file).tensors.at("layer.weight").equal(at::ones({1, 2})));
}

TEST_CASE("compiled package: what is none, or lacks a tensor, is refused with the file's name", "[runtime]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "net.pt2";
  CHECK_THAT(error_of([&] { acc::detail::read_compiled_package(file); }), Contains("net.pt2"));
  folder.write("net.pt2", "no archive");
  CHECK_THAT(error_of([&] { acc::detail::read_compiled_package(file); }),
             Contains("net.pt2: is not a zip archive"));
  write_package(file, compiled_description(), {{"layer.weight", at::ones({1, 2})}});
  CHECK_THAT(error_of([&] { acc::detail::read_compiled_package(file); }),
             Contains("net.pt2: lacks the tensor 'scale'"));
}

TEST_CASE("compiled package: damaged weights, a changed description and missing gradients are refused",
          "[runtime]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "net.pt2";
  write_package(file, compiled_description(), tensors(), 1);
  CHECK_THAT(error_of([&] { acc::detail::read_compiled_package(file); }),
             Contains("net.pt2: is damaged: the weights have another checksum"));
  write_package(file, compiled_description(), tensors(), 0, 1);
  CHECK_THAT(error_of([&] { acc::detail::read_compiled_package(file); }),
             Contains("net.pt2: is damaged: the description has another checksum"));
  json incomplete = compiled_description();
  incomplete["libraries"]["training"]["gradients"] = json::array();
  write_package(file, incomplete, tensors());
  CHECK_THAT(error_of([&] { acc::detail::read_compiled_package(file); }),
             Contains("has not one gradient of each "));
}

TEST_CASE("compiled package: it runs where LibTorch, machine and processor are those that it was made for",
          "[runtime]") {
  const auto error_on = [](const CompiledHost& host) {
    return error_of([&] { acc::detail::require_host(package(), host, "net.pt2"); });
  };
  CHECK_NOTHROW(
      acc::detail::require_host(package(), {"2.11.1", "x86_64", {"avx2", "fma", "sse2"}}, "net.pt2"));
  CHECK_THAT(error_on({"2.12.0", "x86_64", {"avx2", "fma"}}),
             Contains("net.pt2: was compiled by torch 2.11.0, and LibTorch is 2.12.0"));
  CHECK_THAT(error_on({"2.11.0", "aarch64", {}}),
             Contains("was compiled for x86_64, and this machine is aarch64"));
  CHECK_THAT(error_on({"2.11.0", "x86_64", {"avx2"}}),
             Contains("was compiled for a processor with fma, which this one lacks"));
}

TEST_CASE("compiled package: words of a description are cut in errors", "[runtime]") {
  acc::CompiledDescription wordy = package();
  wordy.machine = std::string(100'000, 'x');
  const CompiledHost host = {"2.11.0", "x86_64", {}};
  CHECK(error_of([&] { acc::detail::require_host(wordy, host, "net.pt2"); }).size() < 400);
  wordy.torch = wordy.machine;
  CHECK(error_of([&] { acc::detail::require_host(wordy, host, "net.pt2"); }).size() < 400);
  wordy = package();
  wordy.processor = {std::string(100'000, 'x')};
  CHECK(error_of([&] { acc::detail::require_host(wordy, host, "net.pt2"); }).size() < 400);
}

TEST_CASE("compiled package: inputs of another number, type, shape or batch are refused", "[runtime]") {
  const auto error_with = [](const std::vector<at::Tensor>& inputs) {
    return error_of([&] { acc::detail::require_inputs(package(), inputs, "Net"); });
  };
  const at::Tensor targets = at::zeros({4}, at::kLong);
  CHECK_NOTHROW(acc::detail::require_inputs(package(), {at::ones({4, 2}), targets}, "Net"));
  CHECK_THAT(error_with({at::ones({4, 2})}),
             Contains("Net: takes 2 tensors (inputs, then targets), and was given 1"));
  CHECK_THAT(error_with({at::ones({4, 3}), targets}),
             Contains("Net, tensor 1: is [4, 3] of float32, and the step takes [batch, 2] of float32"));
  CHECK_THAT(error_with({at::ones({4, 2}, at::kDouble), targets}), Contains("is [4, 2] of float64"));
  CHECK_THAT(error_with({at::ones({3, 2}), targets}),
             Contains("Net, tensor 2: has 4 samples, and the one before 3"));
  CHECK_THAT(error_with({at::ones({1, 2}), at::zeros({1}, at::kLong)}),
             Contains("has 1 samples, and the model takes at least 2"));
  CHECK_THAT(error_with({at::ones({4, 2}).requires_grad_(), targets}), Contains("requires a gradient"));
  CHECK_THAT(error_with({at::Tensor(), targets}), Contains("is undefined"));
}

}  // namespace compiled_package_test
