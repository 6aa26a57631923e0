// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/batch_parts.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/api/include/torch/data/example.h>
#include <torch/csrc/api/include/torch/ordered_dict.h>

#include <map>
#include <memory>
#include <optional>

#include "acc/runtime/comm/objects.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace batch_parts_test {

namespace elsewhere {

struct Scores {
  at::Tensor rows;
  int steps = 0;
};

void for_each_tensor(Scores& scores, const acc::TensorFunction& function) {
  function(scores.rows);
}

struct Grown {
  std::vector<at::Tensor> layers;
};

void for_each_tensor(Grown& grown, const acc::TensorFunction& function) {
  for (at::Tensor& layer : grown.layers) function(layer);
}

struct Position {
  int line = 0;
  bool operator==(const Position&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Position, line)

}  // namespace elsewhere

namespace {

enum class Split { train, test };

const at::Tensor kRows = at::arange(6, at::kInt).reshape({3, 2});

// The batch as another process receives it.
template <class Batch>
Batch sent(Batch batch) {
  const std::string text = acc::detail::to_text(acc::detail::parts_of(batch));
  return acc::detail::batch_of<Batch>(acc::detail::parts_of_text(text));
}

template <class Batch>
acc::detail::BatchParts parts(Batch batch) {
  return acc::detail::parts_of(batch);
}

std::string said(const acc::detail::BatchParts& parts) {
  return acc::test::error_of([&] { acc::detail::count_rows(parts); });
}

}  // namespace

TEST_CASE("batch_parts: a structure is sent with its keys, texts and values", "[runtime]") {
  using Texts = std::vector<std::string>;
  using Values = std::tuple<int, double, bool, Split, std::string>;
  const Values values{-7, 0.1, true, Split::test, "name"};
  const auto map = sent(std::map<std::string, std::tuple<at::Tensor, Texts, Values>>{
      {"x", {kRows, {"a", "", "c"}, values}}, {"y", {kRows * 2, {"d", "e", "f"}, values}}});
  REQUIRE(map.size() == 2);
  CHECK(std::get<0>(map.at("y")).equal(kRows * 2));
  CHECK(std::get<0>(map.at("y")).scalar_type() == at::kInt);
  CHECK(std::get<1>(map.at("x")) == Texts{"a", "", "c"});
  CHECK(std::get<2>(map.at("x")) == values);

  torch::OrderedDict<std::string, at::Tensor> dict;
  dict.insert("b", kRows);
  dict.insert("a", kRows + 1);
  CHECK(sent(dict).keys() == Texts{"b", "a"});
  CHECK(sent(dict)["a"].equal(kRows + 1));

  const auto example = sent(torch::data::Example<at::Tensor, std::vector<bool>>(kRows, {true, false, true}));
  CHECK(example.data.equal(kRows));
  CHECK(example.target == std::vector<bool>{true, false, true});

  using Maybe = std::pair<std::optional<at::Tensor>, std::optional<std::vector<at::Tensor>>>;
  const auto maybe = sent(Maybe{std::nullopt, {{kRows, kRows + 3}}});
  CHECK_FALSE(maybe.first);
  REQUIRE(maybe.second->size() == 2);
  CHECK(maybe.second->at(1).equal(kRows + 3));
  CHECK(sent(std::pair{elsewhere::Scores{kRows, 3}, 1}).first.rows.equal(kRows));
  CHECK(sent(std::pair{kRows, elsewhere::Position{12}}).second == elsewhere::Position{12});
}

TEST_CASE("batch_parts: samples that are not stacked are sent one by one", "[runtime]") {
  using Sample = std::map<int, std::pair<at::Tensor, std::vector<int>>>;
  const auto samples = sent(std::vector<Sample>{
      {{1, {kRows[0], {1, 2}}}}, {}, {{2, {at::zeros({0, 4}), {}}}, {3, {kRows.t(), {3}}}}, {{4, {}}}});
  REQUIRE(samples.size() == 4);
  CHECK(samples[0].at(1).first.equal(kRows[0]));
  CHECK(samples[0].at(1).second == std::vector{1, 2});
  CHECK(samples[1].empty());
  CHECK(samples[2].at(2).first.sizes() == c10::IntArrayRef({0, 4}));
  CHECK(samples[2].at(3).first.equal(kRows.t()));
  CHECK_FALSE(samples[3].at(4).first.defined());
}

TEST_CASE("batch_parts: a type with only tensors has no serialized values", "[runtime]") {
  CHECK(parts(std::array{kRows, kRows}).common.empty());
  CHECK(parts(torch::data::Example<>(kRows, kRows)).common.empty());
}

TEST_CASE("batch_parts: the type determines whether batches can be sent", "[runtime]") {
  STATIC_REQUIRE(acc::SendableBatch<std::vector<std::map<std::string, std::optional<at::Tensor>>>>);
  STATIC_REQUIRE(acc::SendableBatch<std::vector<elsewhere::Position>>);
  STATIC_REQUIRE_FALSE(acc::SendableBatch<std::pair<at::Tensor, std::shared_ptr<int>>>);
  STATIC_REQUIRE_FALSE(acc::SendableBatch<std::map<std::string, std::vector<std::unique_ptr<int>>>>);
}

TEST_CASE("batch_parts: batches that differ only in rows are concatenated and sliced", "[runtime]") {
  using Batch = std::tuple<at::Tensor, std::vector<int>, int>;
  const acc::detail::BatchParts single = parts(Batch{kRows, {1, 2, 3}, 5});
  const acc::detail::BatchParts two = parts(Batch{kRows.slice(0, 0, 1), {4}, 5});
  const acc::detail::BatchParts whole = acc::detail::concatenate({single, two});
  CHECK(acc::detail::count_rows(whole) == 4);
  const auto cut = acc::detail::batch_of<Batch>(acc::detail::slice_rows(whole, 2, 9));
  CHECK(std::get<0>(cut).equal(at::stack({kRows[2], kRows[0]})));
  CHECK(std::get<1>(cut) == std::vector{3, 4});
  CHECK(std::get<2>(cut) == 5);

  const auto refused = [&](const acc::detail::BatchParts& other) {
    return acc::test::error_of([&] { acc::detail::concatenate({single, other}); });
  };
  const std::string differ =
      "dispatch_batches: batches of different shapes, keys or values cannot be concatenated (set "
      "dispatch_batches to false, or split_batches to true)";
  CHECK(refused(parts(Batch{kRows, {1, 2, 3}, 6})) == differ);
  CHECK(refused(parts(Batch{kRows.t(), {1, 2}, 5})) == differ);
}

TEST_CASE("batch_parts: missing or different numbers of rows are an error", "[runtime]") {
  const std::string where = "dispatch_batches: ";
  CHECK(said(parts(std::pair{kRows, std::vector{1, 2}})) ==
        where + "every tensor and vector of a batch needs the same number of rows");
  CHECK(said(parts(std::pair{kRows, kRows[0][0]})) ==
        where + "a tensor of a batch is undefined or 0-dimensional: it has no rows");
  CHECK(said(parts(7)) == where + "a batch needs a tensor or a vector, to have rows");
  CHECK(acc::test::error_of([] {
          parts(elsewhere::Grown{{kRows}});
        }).starts_with(where + "a batch's type with its own for_each_tensor holds 1 tensors, but 0"));
}

TEST_CASE("batch_parts: a text that is cut short, or another batch's, is refused", "[runtime]") {
  using Batch = std::tuple<at::Tensor, std::vector<std::string>, std::vector<at::Tensor>, std::optional<int>>;
  Batch batch{kRows, {"a", "", "c"}, {kRows}, 7};
  const std::string text = acc::detail::to_text(acc::detail::parts_of(batch));
  const std::string damaged = "dispatch_batches: what another process sent is damaged";
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string_view part = std::string_view(text).substr(0, size);
    CHECK(acc::test::error_of([&] { acc::detail::parts_of_text(part); }).starts_with(damaged));
  }
  const std::string endless = std::string(8, '\0') + std::string(8, '\xff');
  CHECK(acc::test::error_of([&] { acc::detail::parts_of_text(endless); }).starts_with(damaged));
  CHECK(acc::test::error_of([] { acc::detail::batch_of<at::Tensor>({}); }).starts_with(damaged));
  CHECK(
      acc::test::error_of([] { acc::detail::batch_of<std::vector<std::string>>({}); }).starts_with(damaged));
  CHECK(acc::test::error_of([] { acc::detail::batch_of<std::optional<int>>({}); }).starts_with(damaged));
}

}  // namespace batch_parts_test
