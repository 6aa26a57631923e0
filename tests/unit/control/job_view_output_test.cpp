// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_view.hpp"
#include "support/catch.hpp"

namespace job_view_output_test {

using namespace acc;
using namespace acc::launcher;

namespace {

// The output from `position` on, with a mark where the stream changes.
std::string all(const OutputRing& ring, std::uint64_t position = 0) {
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
  CHECK(all(ring).empty());
  ring.append(StreamName::out, "one ");
  ring.append(StreamName::out, "two ");
  ring.append(StreamName::err, "three ");
  ring.append(StreamName::out, "four");
  CHECK(all(ring) == "o:one two e:three o:four");
  CHECK(all(ring, 4) == "o:two e:three o:four");
  CHECK(ring.end() == 18);
}

TEST_CASE("output_ring: a reader continues at its position", "[control]") {
  OutputRing ring;
  ring.append(StreamName::out, "old");
  const std::uint64_t seen = ring.end();
  CHECK(ring.read(seen).bytes.empty());
  ring.append(StreamName::out, "new");
  CHECK(ring.read(seen).bytes == "new");
  CHECK(ring.read(seen).begin == seen);
}

TEST_CASE("output_ring: drops the oldest output, and a reader knows how much", "[control]") {
  OutputRing ring;
  std::string written;
  for (int i = 0; i < 10'000; ++i) {
    const std::string line = std::to_string(i) + "\n";
    written += line;
    ring.append(StreamName::out, line);
  }
  std::string kept;
  for (std::uint64_t at = ring.begin(); at < ring.end();) {
    const OutputRing::Piece piece = ring.read(at);
    kept += piece.bytes;
    at = piece.begin + piece.bytes.size();
  }
  CHECK(kept.size() >= OutputRing::kKept);
  CHECK(kept.size() <= 2 * OutputRing::kKept);
  CHECK(written.ends_with(kept));
  CHECK(ring.read(0).begin == written.size() - kept.size());
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
