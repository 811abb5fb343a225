#include "dist/group.h"

#include <gmock/gmock.h>

#include <atomic>

#include "process/launch.h"
#include "support.h"
#include "thread_group.h"

namespace cgcn::dist {
namespace {

using test::run_ranks;
using test::Switchboard;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Group, OfOneProcessIsTheSameCode) {
  Group group;
  EXPECT_EQ(group.size(), 1u);
  EXPECT_TRUE(group.is_first());
  EXPECT_THAT(group.all_gather("a"), ElementsAre("a"));
  EXPECT_THAT(group.all_gather_values(7), ElementsAre(7));
  EXPECT_EQ(group.broadcast("text"), "text");
  group.barrier();
  group.require_same("the version", "1");
  EXPECT_EQ(group.together([] { return 3; }), 3);
  EXPECT_THROW(group.together([] { throw Error("no"); }), Error);
  group.close();
}

TEST(Group, GathersAndBroadcasts) {
  for (const uint32_t ranks : {2u, 3u, 5u})
    run_ranks(ranks, [&](Group& group) {
      const std::string own(group.rank() * 1000, static_cast<char>('a' + group.rank()));
      const std::vector<std::string> all = group.all_gather(own);
      for (uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(all[r], std::string(r * 1000, static_cast<char>('a' + r)));
      const std::vector<double> numbers = group.all_gather_values(1.5 * group.rank());
      for (uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(numbers[r], 1.5 * r);
      EXPECT_EQ(group.broadcast(group.is_first() ? "of the first" : "of another"), "of the first");
      std::vector<std::string> to;
      for (uint32_t r = 0; r < ranks; ++r) to.push_back(fmt::format("{} to {}", group.rank(), r));
      const std::vector<std::string> from = group.all_to_all(to);
      for (uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(from[r], fmt::format("{} to {}", r, group.rank()));
      EXPECT_EQ(group.ranks_on_this_host(), 1u);
    });
}

TEST(Group, AFailureOfOneIsThrownByAllAndNamesIt) {
  run_ranks(3, [&](Group& group) {
    const std::string message = test::message_of<GroupError>([&] {
      group.together([&] {
        if (group.rank() == 1) throw Error("has no labels", "my-graph", "import it again");
      });
    });
    EXPECT_THAT(message, HasSubstr("rank 1 on host-1"));
    EXPECT_THAT(message, HasSubstr("my-graph"));
    EXPECT_THAT(message, HasSubstr("import it again"));
    // The same on all: as if there were one process.
    EXPECT_EQ(test::message_of<GroupError>([&] { group.together([] { throw Error("is wrong", "--lr"); }); }),
              Error("is wrong", "--lr").what());
    EXPECT_EQ(test::message_of<Interrupted>([&] {
                group.together([&] {
                  if (group.is_first()) throw Interrupted("stopped");
                });
              }),
              "stopped");
    EXPECT_EQ(group.together([] { return 5; }), 5);  // and the group still works
  });
}

TEST(Group, DifferentVersionsAreNamedWithTheirHosts) {
  Switchboard board(4);
  run_ranks(board,
            [&](Group& group) {
              const std::string message = test::message_of<GroupError>([&] {
                group.require_same("the version of clustergcn", group.rank() < 2 ? "0.1" : "0.2", "install one");
              });
              EXPECT_THAT(message, HasSubstr("0.1 on a, 0.2 on c"));
              EXPECT_THAT(message, HasSubstr("others on d"));
            },
            30, {"a", "b", "c", "d"});
}

TEST(Group, WorkInTurnBeginsWithTheFirst) {
  Switchboard board(4);
  std::atomic<uint32_t> begun{0};
  std::vector<uint32_t> place(4);
  run_ranks(board,
            [&](Group& group) {
              EXPECT_EQ(group.ranks_on_this_host(), 2u);
              group.in_turn([&] { place[group.rank()] = begun++; });
            },
            30, {"a", "a", "b", "b"});
  EXPECT_EQ(place[0], 0u);
  EXPECT_EQ(place[2], 1u);  // the first of the other host
  EXPECT_GE(place[1], 2u);
}

TEST(Group, AStoppedRankIsNamed) {
  for (const uint32_t silent : {2u, 1u, 0u}) {
    Switchboard board(3);
    run_ranks(
        board,
        [&](Group& group) {
          group.barrier();
          if (group.rank() == silent) {
            const std::lock_guard lock(board.mutex);
            board.stopped[silent] = true;
          }
          const auto go_on = [&] {
            for (;;) group.barrier();
          };
          if (group.rank() == silent) return (void)test::message_of<Error>(go_on);
          EXPECT_THAT(test::message_of<Error>(go_on),
                      HasSubstr(fmt::format("rank {} on host-{} gave no sign of life", silent, silent)));
        },
        0.4);
    ASSERT_FALSE(board.aborted.empty());
    EXPECT_THAT(board.aborted.front(), HasSubstr(fmt::format("rank {} on host-{}", silent, silent)));
  }
}

TEST(Group, ASlowRankIsWaitedFor) {
  Switchboard board(2);
  run_ranks(
      board,
      [&](Group& group) {
        if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // it computes
        group.barrier();
      },
      0.3);
  EXPECT_TRUE(board.aborted.empty());
}

TEST(Group, AFailureOfOneRankAloneIsSaidOnceByTheFirst) {
  Switchboard board(3);
  run_ranks(
      board,
      [&](Group& group) {
        if (group.rank() == 2)
          group.fail("the disk is full");
        else
          EXPECT_THAT(test::message_of<Error>([&] { group.barrier(); }),
                      HasSubstr("rank 2 on host-2: the disk is full"));
      },
      2);
  ASSERT_FALSE(board.aborted.empty());
  EXPECT_THAT(board.aborted.front(), HasSubstr("rank 2 on host-2: the disk is full"));
}

Launch launch_with(const std::map<std::string, std::string>& variables) {
  return detect_launch([&](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}

TEST(Launch, IsReadFromTheEnvironment) {
  EXPECT_TRUE(launch_with({}).is_alone());
  const Launch open_mpi = launch_with({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_EQ(open_mpi.launcher, "mpirun");
  EXPECT_EQ(open_mpi.rank, 3u);
  EXPECT_EQ(open_mpi.size, 4u);
  EXPECT_TRUE(launch_with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).is_alone());
  EXPECT_FALSE(launch_with({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).is_alone());
  EXPECT_FALSE(launch_with({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}).is_alone());
  EXPECT_TRUE(launch_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}).is_alone());  // a batch script
  EXPECT_FALSE(launch_with({{"PMIX_RANK", "0"}}).is_alone());
  EXPECT_TRUE(launch_with({{"CLUSTERGCN_ALONE", "1"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).is_alone());
}

}  // namespace
}  // namespace cgcn::dist
