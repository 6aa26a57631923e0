// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_view.hpp"
#include "support/catch.hpp"

namespace job_view_output_test {

using namespace acc;
using namespace acc::launcher;

namespace {

// The output from `position` on, with a mark where the stream changes.
std::string output_of(const OutputRing& ring, std::uint64_t position = 0) {
  std::string text;
  for (;;) {
    const OutputRing::Piece piece = ring.read(position);
    if (piece.bytes.empty()) return text;
    text += (piece.stream == StreamName::out ? "o:" : "e:") + piece.bytes;
    position = piece.begin + piece.bytes.size();
  }
}

}  // namespace

TEST_CASE("output_ring: both streams stay in their order", "[control]") {
  OutputRing ring;
  CHECK(output_of(ring).empty());
  ring.append(StreamName::out, "one ");
  ring.append(StreamName::out, "two ");
  ring.append(StreamName::err, "three ");
  ring.append(StreamName::out, "four");
  CHECK(output_of(ring) == "o:one two e:three o:four");
  CHECK(output_of(ring, 4) == "o:two e:three o:four");
  CHECK(ring.end() == 18);
}

TEST_CASE("output_ring: a reader continues at its position", "[control]") {
  OutputRing ring;
  ring.append(StreamName::out, "old");
  const std::uint64_t position = ring.end();
  CHECK(ring.read(position).bytes.empty());
  ring.append(StreamName::out, "new");
  CHECK(ring.read(position).bytes == "new");
  CHECK(ring.read(position).begin == position);
}

TEST_CASE("output_ring: drops the oldest output, and a reader knows how much", "[control]") {
  OutputRing ring;
  std::string input;
  for (int i = 0; i < 10'000; ++i) {
    const std::string line = std::to_string(i) + "\n";
    input += line;
    ring.append(StreamName::out, line);
  }
  std::string output;
  for (std::uint64_t position = ring.begin(); position < ring.end();) {
    const OutputRing::Piece piece = ring.read(position);
    output += piece.bytes;
    position = piece.begin + piece.bytes.size();
  }
  CHECK(output.size() >= OutputRing::kKept);
  CHECK(output.size() <= 2 * OutputRing::kKept);
  CHECK(input.ends_with(output));
  CHECK(ring.read(0).begin == input.size() - output.size());
}

TEST_CASE("output_ring: keeps the end of a write larger than the ring", "[control]") {
  OutputRing ring;
  ring.append(StreamName::err, "before");
  ring.append(StreamName::out, std::string(3 * OutputRing::kKept, 'x') + "end");
  CHECK(ring.end() == 3 * OutputRing::kKept + 9);
  CHECK(ring.end() - ring.begin() == OutputRing::kKept);
  CHECK(ring.read(ring.end() - 3).bytes == "end");
}

}  // namespace job_view_output_test
