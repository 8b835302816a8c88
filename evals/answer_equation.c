/* Finds the result of a calculation in a sentence: the 18 of "So he sells 24 - 6 = 18 of the 24
 * pens." */
#include <string.h>

#include "evals/answer_parts.h"

#define MINUS_TIMES "-+*/x]|\xC3\x97|\xC3\xB7|\xE2\x88\x92|\xE2\x80\x93"

/* Finds the number after the last equals sign if the text before it calculates with numbers and no
 * other result follows. Formulas of LaTeX are read in other ways. */
static bool find_result(span sentence, span *result) {
    static pattern calculation = {
        .regex = "(?i)[0-9][^=\\n]{0,60}(?:[" MINUS_TIMES ") ?[$(]*[0-9.][^=\\n]{0,60}=\\s*"
                 "\\\\?\\$?(-?[0-9][0-9,]*+(?:\\.[0-9]+)?)(?!\\$| ?(?:[" MINUS_TIMES
                 "|\\^|\\() ?[$(]*[0-9]|:)"};
    static pattern formal = {
        .regex =
            "\\\\(?![$%])|[\\^_{}*]{2}|[\\^_{}?]|[0-9a-z)]\\$(?:[\\s.,]|$)|"
            "\xC2[\xB1-\xB3\xB7\xB9\xBC-\xBE]|\xE2\x88[\x9A\x9E\xAB]|\xCF\x80|(?<![A-Za-z'&\x99])"
            "(?![AIaix])[A-Za-z](?![A-Za-z'.&])|[0-9][a-z](?![A-Za-z])|\\b(?:wrong|incorrect|"
            "mistak|"
            "erroneous|tempt)"};
    static pattern later = {
        .regex =
            "(?i)=|;|,? (?:so|thus|hence|therefore|but|which|leaving|meaning)\\b[^0-9]*[0-9]|, "
            "(?:and|then)\\b[^0-9]*[0-9]"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&formal, sentence, 0, NULL) ||
        !pattern_find_last(&calculation, sentence, groups))
        return false;
    *result = groups[1];
    return !pattern_find(&later, span_from(sentence, result->s + result->n), 0, NULL);
}

bool answer_is_calculation(span sentence) {
    static pattern contrast = {.regex = "(?i)\\b(?:but|however|wrong|too|is not|isn't)\\b"};
    span result;
    return find_result(sentence, &result) && !pattern_find(&contrast, sentence, 0, NULL);
}

void answer_add_result(found_answer *a, span text, span sentence) {
    span clause = answer_main_clause(sentence), result;
    bool whole = clause.s == sentence.s; /* only words at the end are missing */
    if (!find_result(whole ? sentence : clause, &result))
        return;
    span before = {sentence.s, (size_t)(result.s - sentence.s)};
    if (answer_is_limited(before))
        return;
    extraction x = {"result", result};
    answer_add_number(a, text, &x);
}
