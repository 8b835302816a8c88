/* Amounts in a sentence that are given, and not asked for: the 9 of "She rode 26 miles in all, 9 of
 * them uphill." */
#include "evals/answer_parts.h"

/* Verbs whose object is the amount that was asked for, so that a time after it can be dropped:
 * "earns 20 dollars in 4 hours". A verb such as "paint" is missing, because "He can paint 3 rooms
 * in 4 hours" may answer how long that takes. */
#define MOTION                                                                                     \
    "(?:travel(?:s|ed|led)?|drives?|drove|runs?|ran|walks?|walked|rides?|rode|covers?|"            \
    "covered|"                                                                                     \
    "hikes?|hiked|flies|flew|swims?|swam|earns?|earned|makes?|made|produces?|produced|"            \
    "sells?|"                                                                                      \
    "sold|reads|types|picks?|picked|collects?|collected|saves?|saved|spends?|spent|eats?|"         \
    "ate|drinks?|drank|"                                                                           \
    "uses?|used|bakes?|baked|gains?|gained|loses?|lost|pays?|paid|receives?|received)"

span answer_without_second_amount(span text) {
    enum { kMost = 160 };
    static pattern amounts[] = {
        {.flags = PATTERN_LONG,
         .regex = "(?i)\\b" MOTION " (?:a (?:total|distance) of )?[$*]*[0-9][0-9.,]*+\\**"
                  "(?: [a-z]+\\**){1,3}?\\K,? (?:in|over|during|after|within|for|every) (?:the |"
                  "those |these |all )?(?:first |next |last )?(?:[0-9][0-9.,]*+ )?(?:seconds?|"
                  "minutes?|hours?|days?|weeks?|months?|years?)[.!]?$"},
        {.regex = "(?i)\\b(?:takes?|took|needs?|requires?)(?: [a-zA-Z]+){0,2} \\**[0-9][0-9.,/]*+ "
                  "(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\\**\\K to "
                  "[^.,!?\\n$=]*[.!]?$"},
        {.regex = "(?i)[0-9] [a-z]+\\K (?:for|at) \\\\?\\$[0-9][0-9.,]*+ (?:each|apiece|per "
                  "[a-z]+)[.!]?$"},
        {.regex = "(?i)[0-9][^!?\\n]*[0-9a-z*](?<! be)(?<! is)(?<! are)\\K,? (?:for|on|"
                  "among|from|with|at|over|by|to|in) "
                  "(?:the|these|those|all|his|her|their|its) (?:other )?\\\\?\\$?[0-9][0-9,.]*+"
                  "(?: [a-zA-Z]+){1,3}[.!]?$"},
        {.regex = "(?i)[0-9] [^.!?\\n$]*[a-z]\\K,? (?:with|leaving) (?:[0-9]+|one|two|three|four|"
                  "five)(?: [a-z]+){0,3} (?:left ?over|left|remaining|to spare)[.!]?$"},
        {.regex = "(?i)[0-9][^!?\\n]*[0-9a-z]\\K (?:out )?of (?:his|her|their|its) (?:original |"
                  "total )?\\\\?\\$?[0-9][0-9,.]*+(?: [a-z]+){0,2}[.!]?$"},
        {.regex =
             "(?i)[0-9][^!?\\n]*[0-9a-z]\\K (?:to (?:reach|meet|hit) (?:his|her|their|the|its) "
             "[a-z]+|in (?:the|an?|his|her|their) [a-z]+) of \\\\?\\$?[0-9][0-9,.]*+"
             "(?: [a-z]+)?[.!]?$"},
        {.regex = "(?i)[0-9][^.!?\\n]* than [^.!?\\n0-9]*[a-z]\\K, who (?:is|was) [0-9]+"
                  "(?: years old)?[.!]?$"},
        {.regex = "(?i)[0-9][^!?\\n]*[0-9a-z]\\K, (?:[0-9]+ of (?:them|which|whom|these)|"
                  "[0-9]+(?: [a-z]+)? (?:in|for|per|on|to|at|from) (?:each|every)|(?:up|down) "
                  "from \\\\?\\$?[0-9]|each with [0-9])[^!?\\n=]*$"},
        {.regex = "[0-9][^!?\\n]*[0-9a-z]\\K,? (?:while|whereas) [A-Z][a-z]+ "
                  "(?:has|have|had|got|gets|is) \\\\?\\$?[0-9][0-9,.]*+(?: [a-z]+){0,3}[.!]?$"},
        {.regex = "(?i)[0-9][^!?\\n]*[0-9a-z]\\K, (?:(?:i\\.e\\.|that is),? )?"
                  "[0-9][0-9,.]*+(?: [a-z]+)? "
                  "(?:more|less|fewer|[a-z]+er) than [^0-9!?\\n]*$"},
        {.regex =
             "(?i)[0-9][^!?\\n]*[0-9a-z]\\K, and (?:one|two|three|four|five|six|ten|[0-9]+|an?)"
             "(?: [a-z]+){0,2} costs? \\\\?\\$[0-9][0-9.,]*[.!]?$"},
        {.regex = "(?i)[0-9][^.!?\\n]*[a-z]\\K, a difference of [0-9][^!?\\n]*$"},
        {.regex =
             "(?i)[0-9][^.!?\\n]*\\K, and (?:in|after) [0-9]+ (?:days?|weeks?|months?|years?),? "
             "[a-z]+ will (?:be|have) \\\\?\\$?[0-9][^.!?\\n]*[.!]?$"},
        {.regex =
             "(?i)[0-9][^!?\\n]*[0-9a-z]\\K, an? (?:total )?(?:loss|gain|drop|increase|decrease|"
             "reduction|difference|saving|profit|change) of [^!?\\n$]*\\\\?\\$?[0-9][0-9.,]*%?"
             "(?: [a-z]+)?[.!]?$"},
        {.regex =
             "(?i)[0-9] [a-z][^.!?,\\n]*\\K,? when (?:his|her|their|its|the|[A-Z][a-z]+'s) [a-z ]+ "
             "(?:turns?|is|was|reaches|will be) [0-9]+[.!]?$"},
        {.regex = "(?i)[0-9][^.!?\\n]*[a-z]\\K \\((?=[^()]*[0-9])[^()$\\\\=]*[a-z]{2,} [^()$\\\\=]*"
                  "[a-z]{2,}[^()$\\\\=]*\\)[.!]?$"},
        {.regex = "(?i)[0-9][^!?\\n]*[0-9a-z]\\K, compared (?:with|to) [^!?\\n]*$"},
    };
    span groups[PATTERN_GROUPS];
    text = span_trim(text);
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
        if (pattern_find(&amounts[i], span_tail(text, kMost), 0, groups))
            text.n = (size_t)(groups[0].s - text.s);
    return text;
}
