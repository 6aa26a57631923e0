// SPDX-License-Identifier: Apache-2.0
#include "acc/metrics/metrics_text.hpp"

#include <limits>

#include "support/catch.hpp"

namespace metrics_text_test {

using namespace acc::launcher;

namespace {

const std::vector<Metric> kMetrics = {
    {.name = "acc_rank_memory_bytes",
     .unit = "bytes",
     .help = "Its memory.",
     .samples = {{.labels = {{"job", "train-1"}, {"rank", "0"}}, .value = 1048576.0}, {.value = 0.5}}},
    {.name = "acc_rank_tokens",
     .type = Metric::Type::counter,
     .help = "Its tokens.",
     .samples = {{.labels = {{"job", "train-1"}}, .value = 812}}},
    {.name = "acc_rank_loss", .help = "Nobody has one."}};

std::string value_text(double value) {
  const std::string text =
      metrics_text({{.name = "x", .samples = {{.value = value}}}}, MetricsFormat::prometheus);
  return text.substr(text.find("\nx ") + 3);
}

}  // namespace

TEST_CASE("metrics_text: OpenMetrics has units, counters without suffix, and an end", "[metrics]") {
  CHECK(metrics_text(kMetrics, MetricsFormat::open_metrics) == R"(# TYPE acc_rank_memory_bytes gauge
# UNIT acc_rank_memory_bytes bytes
# HELP acc_rank_memory_bytes Its memory.
acc_rank_memory_bytes{job="train-1",rank="0"} 1048576
acc_rank_memory_bytes 0.5
# TYPE acc_rank_tokens counter
# HELP acc_rank_tokens Its tokens.
acc_rank_tokens_total{job="train-1"} 812
# EOF
)");
  CHECK(metrics_text({}, MetricsFormat::open_metrics) == "# EOF\n");
}

TEST_CASE("metrics_text: Prometheus's own format describes a counter by its whole name", "[metrics]") {
  CHECK(metrics_text(kMetrics, MetricsFormat::prometheus) == R"(# TYPE acc_rank_memory_bytes gauge
# HELP acc_rank_memory_bytes Its memory.
acc_rank_memory_bytes{job="train-1",rank="0"} 1048576
acc_rank_memory_bytes 0.5
# TYPE acc_rank_tokens_total counter
# HELP acc_rank_tokens_total Its tokens.
acc_rank_tokens_total{job="train-1"} 812
)");
}

TEST_CASE("metrics_text: a label may have any characters", "[metrics]") {
  const std::string text =
      metrics_text({{.name = "x", .samples = {{.labels = {{"job", "a\"b\\c\nd"}}, .value = 1}}}},
                   MetricsFormat::prometheus);
  CHECK(text.find(R"(x{job="a\"b\\c\nd"} 1)") != std::string::npos);
}

TEST_CASE("metrics_text: numbers that are none have Prometheus's names, and others all their digits",
          "[metrics]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(value_text(std::numeric_limits<double>::quiet_NaN()) == "NaN\n");
  CHECK(value_text(kInfinity) == "+Inf\n");
  CHECK(value_text(-kInfinity) == "-Inf\n");
  CHECK(value_text(1764253992.123) == "1764253992.123\n");
  CHECK(value_text(1e300) == "1e+300\n");
}

TEST_CASE("metrics_text: a client gets OpenMetrics if it says that it knows that", "[metrics]") {
  CHECK(format_for("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1") ==
        MetricsFormat::open_metrics);
  CHECK(format_for("") == MetricsFormat::prometheus);
  CHECK(format_for("text/html,*/*;q=0.8") == MetricsFormat::prometheus);
}

}  // namespace metrics_text_test
