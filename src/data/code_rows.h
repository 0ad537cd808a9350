// Converts raw rows of the known code data sets into native rows {id, problem, solution?, tests,
// source}. The columns identify the data set:
//
//   HumanEval, HumanEval+ and others in that form   prompt, entry_point, canonical_solution, test
//   EvalPlus's own files (HumanEval+, MBPP+)        the same with base_input, plus_input, atol
//   MBPP, and its sanitized form                    text | prompt, code, test_list
//   MBPP+ in MBPP's form                            prompt, code, test_list, test
//   LiveCodeBench                                   question_content, public_test_cases
//   LiveCodeBench statements                        problem, sample_tests, starter_code
//   rllm / DeepCoder                                problem, tests ({inputs, outputs}, a list of
//                                                   {input, output}, or {functional})
//   AceCode                                         question, test_cases
//   APPS, TACO                                      question, input_output (JSON text)
//   verl's code rows                                reward_model.ground_truth: JSON text with
//                                                   inputs and outputs, or a list of asserts
//   Dolci-RLZero's code rows                        messages | prompt, ground_truth: the same
//
// Tests keep their inputs, expected outputs, tolerances and comparisons. Note:
// - EvalPlus's own files hold inputs without outputs. The test made from such a row runs the
//   canonical solution beside the candidate and compares as EvalPlus does.
// - Two errors of EvalPlus's files in the older forms are corrected, since no program
//   (HumanEval/32) or any program (Mbpp/737, 787, 794) passes otherwise.
// - MBPP's challenge_test_list is left out, as in everyone's MBPP figures.
#pragma once

#include <optional>
#include <string>

#include "io/json.h"

namespace antisd::inline data {

bool is_raw_code_row(const Json& row);

// Nothing for a row without tests (statements only). InputError naming `where` for a row of an
// unknown kind, with its columns, or one that does not fit its kind's rules. `source` and
// `fallback_id` are used for rows without their own.
std::optional<Json> native_code_row(const Json& row, const std::string& where,
                                    const std::string& source, const std::string& fallback_id);

// Tests of {"inputs", "outputs", "fn_name"?}, as text or parsed; null if there are none.
Json input_output_tests(Json given, const std::string& starter_code, const std::string& where);
// Whether a ground truth is tests and not an answer, and those tests.
bool holds_code_tests(const Json& truth);
Json code_tests_of_truth(Json truth, const std::string& where);

// The test code of a row of EvalPlus's own files (evalplus_rows.cpp). Inputs are JSON text.
Json evalplus_tests(const Json& row, const std::string& where);

}  // namespace antisd::inline data
