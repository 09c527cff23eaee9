#include "common/net/rpc/method_access.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

struct Row {
  const char* method;
  bool chief;
  bool worker;
  bool person = false;  // The role "operator".
};

// Repeats the whole table, so that each change of it must be made here, too.
constexpr Row kRows[] = {
    {"/muster.Collectives/OpenLane", true, true},
    {"/muster.Job/Checkpoint", true, false, true},
    {"/muster.Job/Drain", true, false, true},
    {"/muster.Job/Stop", true, false, true},
    {"/muster.Job/Trace", true, false, true},
    {"/muster.ParameterServer/Create", true, false},
    {"/muster.ParameterServer/Describe", true, true},
    {"/muster.ParameterServer/Exchange", true, true},
    {"/muster.ParameterServer/Freeze", true, false},
    {"/muster.ParameterServer/Restore", true, false},
    {"/muster.ParameterServer/RollBack", true, false},
    {"/muster.ParameterServer/Save", true, false},
    {"/muster.ParameterServer/SetOptimizer", true, false},
    {"/muster.ParameterServer/Share", true, true},
    {"/muster.ParameterServer/Watch", true, false},
    {"/muster.PeerGroup/Converse", true, true},
    {"/muster.ParameterServer/KeepCopy", true, false},
    {"/muster.ParameterServer/TakeOver", true, false},
    {"/muster.PeerGroup/Identify", true, true},
    {"/muster.Task/End", true, false},
    {"/muster.Task/OpenLocalConnection", true, true, true},
    {"/muster.Task/Trace", true, true},
    {"/muster.Worker/FetchResult", true, false},
    {"/muster.Worker/Session", true, false},
};

TEST(MethodAccessTest, EveryCellOfTheTable) {
  for (const Row& row : kRows) {
    EXPECT_EQ(MayCall("chief", row.method), row.chief) << row.method;
    EXPECT_EQ(MayCall("worker", row.method), row.worker) << row.method;
    EXPECT_EQ(MayCall("operator", row.method), row.person) << row.method;
    for (const char* role : {"ps", "evaluator", "", "Chief", "root"}) {
      EXPECT_FALSE(MayCall(role, row.method)) << role << " " << row.method;
    }
  }
}

TEST(MethodAccessTest, OnlyAServerSendsItsStateToAnother) {
  constexpr char kCopy[] = "/muster.ParameterServer/Copy";
  EXPECT_TRUE(MayCall("ps", kCopy));
  for (const char* role : {"chief", "worker", "operator", "evaluator", ""}) {
    EXPECT_FALSE(MayCall(role, kCopy)) << role;
  }
  EXPECT_FALSE(ChecksEachMessage(kCopy));
  EXPECT_TRUE(ChecksEachMessage("/muster.ParameterServer/Watch"));
}

TEST(MethodAccessTest, AMethodThatTheTableDoesNotListIsRefused) {
  for (const char* method :
       {"", "/muster.ParameterServer/Dump", "/muster.ParameterServer/",
        "muster.ParameterServer/Exchange", "/muster.Task/End/"}) {
    EXPECT_FALSE(MayCall("chief", method)) << method;
    EXPECT_FALSE(MayCall("worker", method)) << method;
    EXPECT_FALSE(MayCall("operator", method)) << method;
  }
}

}  // namespace
}  // namespace muster
