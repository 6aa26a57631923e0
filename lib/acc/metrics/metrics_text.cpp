// SPDX-License-Identifier: Apache-2.0
#include "acc/metrics/metrics_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace acc::launcher {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    if (character == '\n') {
      result += "\\n";
      continue;
    }
    if (character == '\\' || character == '"') result += '\\';
    result += character;
  }
  return result;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string labels_text(const MetricSample& sample) {
  std::string text;
  for (const auto& [name, value] : sample.labels)
    text += fmt::format("{}{}=\"{}\"", text.empty() ? '{' : ',', name, escaped(value));
  return text.empty() ? text : text + '}';
}

}  // namespace

std::string_view content_type(MetricsFormat format) {
  return format == MetricsFormat::open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                               : "text/plain; version=0.0.4; charset=utf-8";
}

MetricsFormat format_for(std::string_view accept) {
  return accept.find("application/openmetrics-text") != std::string_view::npos ? MetricsFormat::open_metrics
                                                                               : MetricsFormat::prometheus;
}

std::string metrics_text(const std::vector<Metric>& metrics, MetricsFormat format) {
  const bool is_open = format == MetricsFormat::open_metrics;
  std::string text;
  const auto out = std::back_inserter(text);
  for (const Metric& metric : metrics) {
    if (metric.samples.empty()) continue;
    const bool is_counter = metric.type == Metric::Type::counter;
    const std::string sampled = metric.name + (is_counter ? "_total" : "");
    const std::string& described = is_open ? metric.name : sampled;
    fmt::format_to(out, "# TYPE {} {}\n", described, is_counter ? "counter" : "gauge");
    if (is_open && !metric.unit.empty()) fmt::format_to(out, "# UNIT {} {}\n", described, metric.unit);
    fmt::format_to(out, "# HELP {} {}\n", described, metric.help);
    for (const MetricSample& sample : metric.samples)
      fmt::format_to(out, "{}{} {}\n", sampled, labels_text(sample), number(sample.value));
  }
  if (is_open) text += "# EOF\n";
  return text;
}

}  // namespace acc::launcher
