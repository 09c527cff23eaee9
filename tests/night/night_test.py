"""Tests the record of the long checks, and that it includes every step."""

import unittest

import night

HEAD = "# A page\n\nText.\n"


class NightTest(unittest.TestCase):

    def test_every_fuzz_target_is_a_step(self):
        targets = night.fuzz_targets()
        self.assertTrue({"graph", "frame", "hdf5", "tf_config"} <= set(targets))

    def test_rooms_with_tests_are_steps(self):
        folders = night.folders()
        self.assertTrue({"common/io", "coordinator", "ps", "tests/faults"} <= set(folders))
        self.assertFalse({"proto", "tests/tidy", "third_party"} & set(folders))

    def test_the_record_is_read_as_it_is_written(self):
        rows = {"asan:ps": ("2026-01-02", "0123abcd", "3 passed, 0 failed, 0 skipped")}
        steps = ["asan:ps", "fuzz:csv"]
        text = night.write_record(HEAD, steps, rows)
        read = night.read_record(text)
        self.assertEqual(read["asan:ps"], rows["asan:ps"])
        self.assertEqual(night.write_record(text, steps, read), text)
        # A step that no longer exists has no row.
        self.assertNotIn("asan:ps", night.write_record(text, ["fuzz:csv"], read))

    def test_what_ran_longest_ago_comes_first(self):
        text = night.write_record(HEAD, ["a:1", "b:2", "c:3"],
                                  {"a:1": ("2026-01-03", "0", "ok"),
                                   "b:2": ("2026-01-02", "0", "ok")})
        self.assertEqual(night.in_order(["a:1", "b:2", "c:3"], night.read_record(text)),
                         ["c:3", "b:2", "a:1"])

    def test_results_of_tests(self):
        self.assertEqual(night.result_of_tests(0, "x\n5 passed, 0 failed, 2 skipped\n"),
                         (True, "5 passed, 0 failed, 2 skipped"))
        self.assertEqual(night.result_of_tests(1, "5 passed, 1 failed, 0 skipped\n"),
                         (False, "5 passed, 1 failed, 0 skipped"))
        self.assertEqual(night.result_of_tests(None, ""), (False, "did not end in time"))
        self.assertEqual(night.result_of_tests(2, "no\n"), (False, "did not come to a count"))

    def test_results_of_fuzzing(self):
        self.assertEqual(night.result_of_fuzzing(0, "Done 12345 runs in 61 second(s)\n"),
                         (True, "12,345 inputs in 61 s, no crash"))
        self.assertEqual(
            night.result_of_fuzzing(77, "artifact_prefix='./'; Test unit written to ./crash-ab1\n"),
            (False, "found crash-ab1"))
        self.assertEqual(night.result_of_fuzzing(1, "ERROR: build\n"), (False, "status 1"))

    def test_all_rows_of_the_page_are_read(self):
        with open(night.RECORD, encoding="utf-8") as file:
            rows = file.read().split("| --- |")[-1].splitlines()[1:]
        self.assertTrue(rows)
        for row in rows:
            self.assertTrue(night.read_record(row + "\n"), row)


if __name__ == "__main__":
    unittest.main()
