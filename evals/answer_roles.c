/* Finds the answer of a sentence with several amounts: the 12 of "After giving 5 of them away, Tom
 * has 12 apples left over from the 17." Each amount has a role in its sentence. A sentence states
 * an amount as its subject, its object or after "is". It gives other amounts in phrases with a
 * preposition, after "the" or "his", and in subordinate clauses. */
#include <string.h>

#include "evals/answer_parts.h"

#define ONES   "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
#define AMOUNT "\\\\?\\$?[0-9][0-9,]*+(?:\\.[0-9]+)?\\$?"

/* How far an amount is from being what the sentence states, the nearest first. */
typedef enum {
    ROLE_STATED,
    ROLE_ADJUNCT, /* "in 3 hours" */
    ROLE_GIVEN,   /* "the 3 hours", "to save $500", "because 3 are red" */
} amount_role;

typedef struct {
    span s;
    amount_role role;
} amount;

enum { kAmounts = 8 };

/* True if the sentence has a formula, signs between numbers, a list or marked text, which are read
 * in other ways, or a word that makes a pair of numbers one value. */
static bool is_formal(span sentence) {
    static pattern formal = {
        .flags = PATTERN_LONG,
        .regex =
            "(?i)(?<![\\\\0-9])\\$(?!-?[0-9][0-9,.]*+(?:\\$|[ %!)]|$))|\\\\(?![$%])|[=^_{}<>|"
            "~*`?#]|"
            "\xE2\x89|\xE2\x88\x9A|\xC2[\xB1-\xB3\xBC-\xBE]|\xCF\x80|\xE2\x86\x92|"
            "[0-9)]\\$? ?(?:[-+/]|\xC3\x97|\xC3\xB7|\xE2\x88\x92|\xC2\xB7|\xE2\x80\x93) "
            "?[($]*[0-9(]|"
            "[0-9]:[0-9]|\\([^a-z()]*\\)|[0-9] (?:days?|weeks?|hours?|minutes?|tons?|"
            "feet|years?|months?), which is " AMOUNT " [a-z]+[.]?$|[0-9] (?:to|by) (?:about "
            ")?\\\\?\\$?[0-9]|[0-9] over [0-9]+[.]?$|(?<!of |both |between )(?<![0-9.,$])"
            "\\$?[0-9][0-9,.]*+\\$?,? (?:and|or) \\\\?\\$?[0-9]++\\$?(?!%| [a-z]+ [a-z])|"
            "[0-9]\\$?, \\$?[0-9]+\\$?(?:,|[.!]?$)|^[^a-z]*[a-z]*:|"
            "\\b(?:probability|chances?|odds|ratio|fraction)\\b.* (?:in|out of|to) [0-9]|"
            "[0-9] (?:in|out of|to) [0-9]+ (?:probability|chance)|"
            "\\b(?:mod|modulo|base [0-9]+|remainder|divided|plus|minus|squared|or(?! [0-9.]+%|"
            " " AMOUNT
            "(?: [a-z]+)? (?:per|each|every|for each|a)\\b)|neither|nor|would\\b.*\\bif|either|"
            "respectively|"
            "each other|every other|x|y|n|k|wrong (?:answer|result)|incorrect|mistake|tempting|"
            "(?:we|i) (?:double|halve|triple|add|subtract|multiply|divide))\\b"};
    return pattern_find(&formal, sentence, 0, NULL);
}

/* The clause that gives a result after other amounts: the "50%" of "14 of the 28 pupils walk, which
 * is 50%.". If there is none, returns the main clause. */
static span result_clause(span sentence) {
    static pattern result = {
        .regex =
            "(?i)(?:[0-9][^0-9]+[0-9](?:[^,;]|,(?=[0-9]{3}))*,\\s(?:(?:which|this|that) "
            "(?:is|was|equals)|or(?= [0-9.]+%))|[0-9](?:[^,;]|,(?=[0-9]{3}))*,\\s(?:(?:which|"
            "this|that) (?:means|leaves|makes|gives|comes to|earn(?:s|ed)|costs?|adds up to|totals)"
            "(?: that| (?:him|her|them))?|meaning|making|leaving|"
            "giving|bringing|for an? [a-z]+ of))\\s(?=[^0-9,;]*[0-9])(?![^,;]*\\b(?:than|as|half|"
            "twice)\\b)"};
    static pattern gerund = {
        .regex = "^(?:[A-Z][a-z]+ing|To [a-z]+|In order to)\\s[^,]*,\\s(?=.*[0-9])"};
    static pattern digit = {.regex = "[0-9]"};
    span groups[PATTERN_GROUPS];
    if (pattern_find(&result, sentence, 0, groups) || pattern_find(&gerund, sentence, 0, groups))
        return span_from(sentence, groups[0].s + groups[0].n);
    span main = answer_main_clause(sentence);
    return pattern_find(&digit, main, 0, NULL) ? main : sentence;
}

/* What can follow the result in its clause, from the comma or space before it. */
static pattern endings[] = {
    /* subordinate clauses: "since 13 are taken", "so that 16 get 4 each" */
    {.regex =
         "(?i)(?<=[a-z0-9%$])[,;]?\\s(?:while|whereas|because|since|before|once|when|until|if|"
         "so that|now that|although|though|after (?:(?:the |all )?[0-9]+ (?:[a-z]+ )?(?:are|is|"
         "have|has|were)|he|she|they|it|we)|as (?!many\\b|much\\b|[a-z]+ as\\b)(?=[^,;]* (?:are|"
         "is|was|were|has|have|had|did|will|costs?)\\b))\\b"},
    /* phrases, if no verb of the clause follows: "including the 3 hours", "after spending $5" */
    {.regex = "(?i)(?<=[a-z0-9%$])[,;]?\\s(?:considering|given|assuming|including|excluding|"
              "counting|compared|having|rather than|instead of|as against|after [a-z]+ing)\\b(?!.* "
              "(?:is|are|was|costs?|comes|equals)\\b)"},
    /* comparisons and additions: ", half as many as Max's 56", ", beating the record by 2" */
    {.regex =
         "(?i)(?<=[a-z0-9%$])[,;]\\s(?:twice|half|double|triple|(?:two|three|four|five|[0-9]+) "
         "times|the same|just as|up|down|(?!meaning|leaving|making|giving|bringing|total)"
         "[a-z]+ing|(?:the|an?) [a-z]+ (?:of|from|for)|" AMOUNT
         "(?: [a-z]+)? (?:each|apiece|(?:more|less|fewer|[a-z]+er) than))\\b"},
    /* parts of the amount: ", 25 in each box", ", 3 of them red", ": 5 boys and 3 girls" */
    {.regex =
         "(?i)(?<=[a-z0-9%$])(?:[,;]\\s(?:(?:and )?the (?:other|rest)\\b|" AMOUNT
         " of (?:them|which|whom|these|it)\\b|" AMOUNT "(?: [a-z]+)? (?:(?:in|for|per|on|to|at|"
         "from) (?:each|every|an?)\\b|for$|(?:on|in|at|from|by|for) [^0-9]* and " AMOUNT
         ")|or " AMOUNT "(?: [a-z]+)? (?:per|each|every|for each|an?)\\b)|:\\s(?=" AMOUNT
         " [a-z]+(?:,| and) )|"
         "\\s\\([^()]*\\)[.!]?$)"},
    /* denials: ", not 100", " and not 100" */
    {.regex = "(?i)(?<=[a-z0-9%$])(?:,\\s(?:and )?not\\b|\\s(?:and )?not " AMOUNT ")"},
};

/* The result clause of a sentence, up to the end of the result. */
static span stated_part(span sentence) {
    static pattern digit = {.regex = "(?i)[0-9]|\\b(?:" ONES ")\\b|^One "};
    span s = result_clause(sentence), groups[PATTERN_GROUPS];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        for (size_t from = 0; from <= s.n && pattern_find(&endings[i], s, from, groups);) {
            span before = {s.s, (size_t)(groups[0].s - s.s)};
            from = before.n + groups[0].n;
            if (pattern_find(&digit, before, 0, NULL))
                s = before;
        }
    return s;
}

/* True if the words before an amount make it part of a phrase such as "in 3 hours", "of 24 pens",
 * "with his other 5". After some words a preposition states the result: "adds up to 70", "a profit
 * of $120", "in total 45". */
static bool is_adjunct(span before) {
    static pattern phrase = {
        .regex =
            "(?i)\\b(?:in|for|of|from|at|over|within|on|onto|with|to|per|than|as|among|under|"
            "above|below|against|during|after|before|into|between|around|"
            "through|without|out of|by(?= (?:week|day|year|month|page|age)))\\s(?:(?:only|about|"
            "exactly|every|"
            "each|all|a|an|another|one|first|"
            "last|next|full|more|less|day|week|page|year|age|" AMOUNT
            " and|length|side|height|width|step|grade|size|radius|turn) )*$"};
    static pattern states = {
        .regex =
            "(?i)\\b(?:(?:sells?|sold|goes|went) for|comes? out at|"
            "(?:bring|brought|rais|lower|cut)[a-z]* (?:\\S+ ){0,4}to|(?:brings?|brought|takes?|"
            "took|rakes?) in|in(?= " AMOUNT " ways)|"
            "(?:come|came|coming|add|amount|sum|grow|grew|rise|rose|increase|go|went|"
            "drop|fall|fell|reduce|shrink|bring|work|equal|lead|up|down|back|close)[a-z]*(?: "
            "(?:up|out|"
            "down|back|it|that|this|the [a-z]+|" AMOUNT "(?: [a-z]+)?))? to|from " AMOUNT
            "(?: [a-z]+)? to|"
            "(?:answer|result|value|total|sum|average|mean|product|difference) of|"
            "(?<!in |for |from |at |over |within |with |after |and )\\ban? "
            "(?:(?!with|of|in|for|from|at)[a-z]+ ){1,3}of|(?:arrive|end|stand|stay|start|"
            "finish|remain)[a-z]*(?: up)? (?:at|with)|(?:left|leave[sd]?)(?: [a-z]+){0,2} with|"
            "consists? of|gets? through|"
            "enough for|belongs? to|in (?:total|all|fact|the end)|at (?:least|most))"
            "(?: (?:a total of|only|about|exactly|another))?\\s$"};
    return pattern_find(&phrase, span_tail(before, 60), 0, NULL) &&
           !pattern_find(&states, span_tail(before, 80), 0, NULL);
}

/* True if the words before an amount say that it is known: "the 28 pupils", "his $9", "(7 boxes)",
 * or what a purpose or a relative clause names: "to save $500", "the number that 7 divides". */
static bool is_given(span before) {
    static pattern known = {
        .regex = "(?i)(?:\\b(?:the|his|her|their|its|my|our|these|those|both|all|"
                 "(?!that|there|it|he|she|what|here|let)[a-z]+(?:'|\u2019)s)"
                 "(?: (?:other|first|last|next|total|original|same|of|initial|given))?"
                 "\\s|\\([^()]*)$"};
    static pattern remaining = {
        .regex = "(?i)\\b(?:is|are|was|were|gives?|leaves?|makes?) (?:the|his|her|their|its)"
                 "(?: (?:other|remaining|last|total))?\\s$"};
    static pattern purpose = {
        .regex = "(?i)(?<!have |has |had |need |needs |needed |able |going |gets |get |used |wants "
                 "|want |hopes |plans |likely |expected |supposed |ought )\\bto (?!be\\b|which\\b|"
                 "(?:the|his|her|their|a|an|each)\\b)[a-z]+ (?:[a-z]+ ){0,3}$"};
    static pattern relative = {.regex =
                                   "(?i)\\b(?:number|integer|value|amount|one|day|year)s? that "
                                   "(?:[a-z0-9]+ )*$"};
    static pattern gerund = {
        .regex = "(?i)\\b(?:from|by|for|after|before|in|of|when) [a-z]+ing (?:[a-z]+ ){0,2}$"};
    return (pattern_find(&known, span_tail(before, 60), 0, NULL) &&
            !pattern_find(&remaining, span_tail(before, 60), 0, NULL)) ||
           pattern_find(&purpose, span_tail(before, 80), 0, NULL) ||
           pattern_find(&gerund, span_tail(before, 80), 0, NULL) ||
           pattern_find(&relative, span_tail(before, 80), 0, NULL);
}

/* The role of an amount between two pieces of its clause. */
static amount_role role_of(span before, span after) {
    static pattern attribute = {.regex = "^-[a-z]"}; /* "a 20-question quiz" */
    static pattern ways = {.regex = "(?i)^ (?:different |distinct )?ways\\b"};
    static pattern ago = {.regex = "(?i)^ [a-z]+ (?:ago|from now|later|earlier|before)\\b"};
    if (pattern_find(&attribute, after, 0, NULL) || is_given(before))
        return ROLE_GIVEN;
    if (pattern_find(&ways, after, 0, NULL))
        return ROLE_STATED;
    return is_adjunct(before) || pattern_find(&ago, after, 0, NULL) ? ROLE_ADJUNCT : ROLE_STATED;
}

/* Finds the amounts of a clause. Returns their number; 0 if there are more than kAmounts. */
static int find_amounts(span clause, amount *out) {
    static pattern number = {
        .regex = "(?i)(?<![\\w.,/:-])(?:\\\\?\\$)?(-?[0-9]++(?:,[0-9]{3})*+(?:\\.[0-9]+)?+)\\$?"
                 "(?:\\s?%|(?![0-9A-Za-z:/%\\xC2]))|\\b((?:" ONES ")\\b|^One\\b(?= (?!of|can|"
                 "way|more|could|might)[a-z]))(?![-0-9]| "
                 "(?:hundred|thousand|times|thirds?|quarters?|fifths?|sixths?|eighths?|tenths?))"};
    span groups[PATTERN_GROUPS];
    int n = 0;
    for (size_t from = 0; pattern_find(&number, clause, from, groups);) {
        if (n == kAmounts)
            return 0;
        span s = groups[groups[1].s ? 1 : 2];
        from = (size_t)(groups[0].s + groups[0].n - clause.s);
        span before = {clause.s, (size_t)(groups[0].s - clause.s)};
        out[n++] = (amount){s, role_of(before, span_from(clause, clause.s + from))};
    }
    return n;
}

/* The amount whose role is nearest to the result. If two have this role, the later one, which is
 * the object or complement if the earlier one is the subject: "3 pens cost $9". NULL if a word such
 * as "and" joins the two, unless each is in a clause of its own ("13 seats are taken, and 7 are
 * free"), or if no verb is between them ("4 hours 30 minutes"). */
static const amount *result_of(const amount *a, int n) {
    static pattern words = {.regex = "(?i)[a-z] [a-z]|\\b(?:is|are)\\b|;"};
    static pattern joint = {.regex = "(?i)[,;:]\\s|\\b(?:and|but|then)\\b"};
    static pattern clause = {.regex =
                                 "(?i)\\b(?:is|are|was|were|has|have|had|[a-z]+ed|[a-z]+s)\\b.*"
                                 "(?:;|,? (?:and|but))\\s(?:[a-z]+ ){0,4}\\\\?\\$?$"};
    const amount *best = &a[0];
    for (int i = 1; i < n; i++)
        if (a[i].role < best->role)
            best = &a[i];
    for (const amount *next = best + 1; next < a + n; next++) {
        if (next->role != best->role)
            continue;
        const char *end = best->s.s + best->s.n;
        span between = {end, (size_t)(next->s.s - end)};
        if (next->role != ROLE_STATED || !pattern_find(&words, between, 0, NULL) ||
            (pattern_find(&joint, between, 0, NULL) && !pattern_find(&clause, between, 0, NULL)))
            return NULL;
        best = next;
    }
    return best;
}

/* True if the words after an amount deny it: "7 is too small". */
static bool is_denied(span after) {
    static pattern denial = {
        .regex = "(?i)^\\s*(?:(?:is|are|was|does|do|can)(?: not|n't)\\b|is too\\b|fails|divides|"
                 "exceeds|cannot\\b)"};
    return pattern_find(&denial, after, 0, NULL);
}

void answer_add_amount(found_answer *a, span text, span sentence, bool shortened) {
    amount all[kAmounts], stated[kAmounts];
    int count = is_formal(sentence) ? 0 : find_amounts(sentence, all);
    if (count < (shortened ? 1 : 2))
        return;
    span part = stated_part(sentence);
    int n = find_amounts(part, stated);
    const amount *best = n ? result_of(stated, n) : NULL;
    static pattern compared = {.regex = "(?i)^(?: [a-z]+)? (?:less|more|fewer) than\\b"};
    if (count == 1 && best &&
        pattern_find(&compared, span_from(part, best->s.s + best->s.n), 0, NULL))
        return;
    if (!best || answer_is_limited((span){part.s, (size_t)(best->s.s - part.s)}) ||
        is_denied(span_from(part, best->s.s + best->s.n)))
        return;
    extraction x = {count > 1 ? "amount" : "last_number", best->s};
    answer_add_number(a, text, &x);
}
