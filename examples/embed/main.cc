// Two communities of a hundred nodes: trains on arrays that this program has, and asks for the classes of two nodes.
#include <clustergcn/clustergcn.h>

#include <cstdio>
#include <random>

int main() {
  constexpr uint32_t kNodes = 200, kFeatures = 4;
  std::mt19937 random(1);
  std::normal_distribution<float> noise;
  std::vector<uint32_t> from, to;
  std::vector<float> features;
  std::vector<int32_t> labels;
  std::vector<uint8_t> split;
  for (uint32_t v = 0; v < kNodes; ++v) {
    const uint32_t community = v % 2;
    for (int link = 0; link < 5; ++link) {
      from.push_back(v);
      to.push_back(random() % (kNodes / 2) * 2 + community);
    }
    for (uint32_t f = 0; f < kFeatures; ++f) features.push_back(noise(random) + static_cast<float>(community));
    labels.push_back(static_cast<int32_t>(community));
    split.push_back(v < 100 ? 0 : v < 140 ? 1 : 2);  // training, validation, test
  }

  try {
    clustergcn::GraphArrays arrays;
    arrays.nodes = kNodes;
    arrays.from = clustergcn::view(from);
    arrays.to = clustergcn::view(to);
    arrays.features = clustergcn::view(features, kFeatures);
    arrays.labels = clustergcn::view(labels);
    arrays.split = clustergcn::view(split);
    const clustergcn::Graph graph = clustergcn::Graph::from_arrays(arrays);

    clustergcn::Options options;
    options.set("layers", "2").set("hidden", "16").set("epochs", "30").set("parts", "4");
    clustergcn::Session session;
    session.on_epoch = [](const clustergcn::Epoch& epoch) {
      if (epoch.number % 10 == 0) std::printf("epoch %u of %u: loss %.3f\n", epoch.number, epoch.of, epoch.loss);
      return true;  // false would end the training here
    };
    const clustergcn::Training training = clustergcn::train(graph, options, session);
    std::printf("test F1 %.1f %%\n", 100 * training.evaluation.test.micro_f1);

    const std::vector<uint32_t> nodes = {150, 151};
    const clustergcn::Matrix probabilities = training.model.probabilities(graph, nodes);
    for (size_t i = 0; i < nodes.size(); ++i)
      std::printf("node %u: class 0 with %.3f, class 1 with %.3f\n", nodes[i],
                  static_cast<double>(probabilities.values[2 * i]), static_cast<double>(probabilities.values[2 * i + 1]));
  } catch (const clustergcn::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
