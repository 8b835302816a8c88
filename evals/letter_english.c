/* letter_english.c - the English entries of the lexicon. */
#include "evals/letter_lexicon.h"

#define RANK(n) (WORD_ORDER | (word_class)(n) << WORD_RANK_SHIFT)

/* clang-format off */
const word_list letter_english[] = {
    {WORD_ANSWER,
     "answer|answers|ans|ans.|answer_choice|answerchoice|answer_letter|correct_answer|"
     "final_answer|final answer|final_choice|correct_option|correct_choice|verdict|decision|"
     "conclusion|guess|selection|solution|vote|money|bet|nod|winner|response|prediction|"
     "answer key|key|tl;dr|tldr|tl dr|result"},
    {WORD_ANSWER | WORD_OPTION, "answer|choice|pick|label|candidate|contender"},
    {WORD_OPTION,
     "option|options|choice|choices|alternative|alternatives|statement|statements|letter|item|"
     "candidate|answer choice|answer option|opt|letter choice"},
    {WORD_OPTION | WORD_BOTH, "options|choices|alternatives|statements"},
    {WORD_RIGHT,
     "correct|correctly|right|best|better|true|valid|accurate|appropriate|proper|suitable|"
     "closest|nearest|strongest|stronger|spot on|just right|exception|odd one|odd one out|"
     "outlier|preferable|way to go|likeliest|safest|fittest|ideal|winning|matching|one left|"
     "right one|supported|what remains|intended|desired|final|chosen|selected|called for|bingo|"
     "the one|keyed|credited|well supported|supported by"},
    {WORD_FALSE, "false|incorrect|untrue|not true|not correct|inaccurate"},
    {WORD_FALSE | WORD_WRONG, "false|incorrect|untrue|inaccurate"},
    {WORD_WRONG,
     "wrong|invalid|impossible|unlikely|implausible|inconsistent|incompatible|flawed|irrelevant|"
     "distractor|distractors|mistaken|fail|fails|failed|violate|violates|contradict|contradicts|"
     "contradicted|out|off|too|weak|weaker|worse|worst|misses|ignores|untenable|unsupported|dead|"
     "nonsense|trap|inferior|insufficient|unsuitable|misleading|inadequate|drops|drop|dropped|"
     "struck|backwards|off topic|gone|lacks|overlooks|confuses|misread|misreads|reverses|"
     "inapplicable|excludable|unrelated|excessive"},
    {WORD_MOST, "most|more|least|only|single|far|by far"},
    {WORD_CHOOSE,
     "put my money on|put money on|choose|chose|choosing|pick|picking|picked|select|selecting|"
     "selected|go with|going with|went with|gone with|go for|going for|went for|opt for|"
     "opting for|opted for|say|stick with|sticking with|stay with|staying with|stand by|"
     "standing by|settle on|settling on|settled on|settle for|settling for|settle upon|lean to|"
     "lean toward|lean towards|leaning to|leaning toward|leaning towards|lean on|lean|leaning|"
     "vote for|voting for|vote|confident in|confident of|mark|marking|tick|ticking|favor|favour|"
     "favoring|favouring|prefer|submit|submitting|circle|circling|lock in|locking in|locked in|"
     "bet on|betting on|land on|landing on|landed on|land at|end up with|end up at|end up on|"
     "end up|ending up with|ending up at|ending up on|come down on|come down to|plump for|"
     "plumping for|side with|siding with|back|backing|endorse|endorsing|put down|put|report|"
     "conclude with|conclude|infer|deduce|guess|guessing|accept|answer|answered|"
     "answering|answer with|answering with|enter|entering|commit to|committing to|settle|write|"
     "write down|conclude for|fill in|bubble in|plumped for|sticking to|stick to|declare|shade|"
     "go|nominate|adopt|arrive at|arriving at|arrives at|arrived at|come out at|come to"},
    {WORD_STUDY, "there's|there is|now"},
    {WORD_SO,
     "with some hesitation|after some hesitation|with hesitation|likely|probably|presumably"},
    {WORD_OTHERS, "forgiven|careless"},
    {WORD_POINT, "backs|backs up"},
    {WORD_CHOOSE | WORD_STUDY, "take|taking|keep|keeping|retain|retaining"},
    {WORD_THINK,
     "think|believe|suspect|suppose|feel|reckon|convinced|certain|sure|confident|bet|say|"
     "conclude|deduce|infer|find|see|seem|inclined to|inclined toward|inclined towards|assume|"
     "presume|guess|judge"},
    {WORD_STUDY | WORD_THINK, "regard|rate|deem|view|see|find|reckon|call"},
    {WORD_POINT,
     "correspond to|corresponds to|corresponding to|correspond with|corresponds with|"
     "corresponding with|point to|points to|pointing to|point at|points at|point toward|"
     "points toward|point towards|points towards|pointing toward|pointing towards|lead to|"
     "leads to|leading to|leads us to|lead us to|leads me to|lead me to|leading us to|"
     "leading me to|led to|brings us to|brings me to|equivalent to|identical to|equal to|"
     "closest to|converge on|converges on|converge to|converges to|converge at|match|matches|"
     "matching|matched|matched by|support|supports|supporting|consistent with|agree with|"
     "agrees with|agreement with|accordance with|in line with|align with|aligns with|in favor of|"
     "in favour of|imply|implies|suggest|suggests|indicate|indicates|confirm|confirms|confirming|"
     "fit|fits|mean|means|give|gives|giving|yield|yields|yielding|get|obtain|i.e.|i.e|that is|"
     "namely|make|makes|making|narrows it to|narrow it to|narrowed it to|looking for|makes it|"
     "make it|making it|makes that|making that|makes this|render|renders|narrow down to|"
     "narrows down to|narrowed down to|narrows to|narrow it down to|narrows it down to|reach|"
     "reaches|reaching|equals|equal|favors|favours|favor|favour|favoring|select|selects|identify|"
     "identifies|identifying|captured by|expressed by|expressed in|stated in|stated by|found in|"
     "given by|given in|given as|listed as|listed in|listed under|shown in|labelled|labeled|"
     "described by|described in|represented by|reflected in|elimination|process of elimination|"
     "exclusion|deduction|default|answered by|satisfied by|met by|explained by|singles out|"
     "single out|leave|belongs to|falls under|came out as|comes out as|come out as|result in|"
     "results in|resulting in|one under|consistent only with|agrees only with"},
    {WORD_FIT,
     "fits|fit|matches|match|satisfies|satisfy|explains|explain|agrees|works|work|holds|hold|"
     "stands|wins|describes|captures|reflects|represents|answers|meets|accounts|survives|survive|"
     "makes sense|makes the most sense|make sense|sounds|aligns|does|obeys|comes out ahead|"
     "comes out on top|comes out best|prevails|follows|applies|qualifies|passes|checks out|agree|"
     "gets it right|does the job|beats|takes it|carries the day|addresses|conforms|complies|"
     "covers|corresponds|tops|has it|delivers|summarizes|summarises|expresses|belongs|suits|"
     "identifies|is left|are left|has the right|has the best|has the strongest|has the most|"
     "has the greatest|has the highest|has the clearest|has the correct|has my vote|has my|"
     "gets my|gets our|gets the|earns my|wins my|receives my|takes my|has our|gives the right|"
     "gives the correct|gives the|gives exactly|gives us the|states exactly|states precisely|"
     "states this|predicts|reproduces|respects|honors|honours|mirrors|fulfills|fulfils|achieves|"
     "supports"},
    {WORD_LEAVE,
     "wins|prevails|leave|leaves|leaving|is left|are left|left with|left standing|remain|remains|"
     "remaining|stay|stays|survive|survives|leaves us with|leaving us with|leaves me with|"
     "leaving me with|leave us with|still standing|last one standing|survivor|down to"},
    {WORD_BE,
     "strikes me as|strikes us as|is|was|be|are|were|been|being|'s|is on|seems|seem|appears|"
     "appear|looks|look|turns out|turned out|proves|proved|becomes|became|equals|remains|stays|"
     "lies in|rests on|rests with|goes to|goes for|falls on|sits with|comes out as|comes out to|"
     "works out|boils down to|comes down to|reads|lands on|seems to|appears to|happens|ends up"},
    {WORD_AUX,
     "would|must|should|will|can only|could only|has to|have to|had to|ought to|got to|gotta|can|"
     "has|have|had|do|does|did|am|shall|let|'d|'ll|'re|'m|has got to|have got to|need to|"
     "needs to|want to|gonna|going to|go|please"},
    {WORD_SO,
     "so|therefore|thus|hence|consequently|accordingly|thereby|ergo|in conclusion|in summary|"
     "to conclude|to sum up|all in all|overall|finally|in the end|ultimately|as a result|"
     "in short|in other words|put differently|simply put|that is to say|then|so that|on balance|"
     "it follows that|in sum|conclusively|bottom line|putting it all together|"
     "everything considered|all things considered|on reflection|on second thought|"
     "upon reflection|on closer inspection|on inspection|upon inspection|on a closer look|"
     "after careful consideration|after consideration|by comparison|for these reasons|"
     "for this reason|that's why|which is why|that is why|if pressed|if forced|if pushed|"
     "if i must|if forced to choose|if forced to pick|if i had to choose|if i had to pick|"
     "if i had to guess|if i have to choose|if i have to pick|if i have to guess|after all that|"
     "after all this"},
    {WORD_NOT,
     "not|never|cannot|can't|couldn't|don't|doesn't|didn't|won't|wouldn't|shouldn't|isn't|aren't|"
     "wasn't|weren't|neither|nor|no|n't|none|nothing|hardly|mustn't|hasn't|haven't|needn't|"
     "nobody|no longer|by no means|nowhere near|far from|rather than|instead of|nope"},
    {WORD_NOT | WORD_BE, "isn't|aren't|wasn't|weren't|ain't"},
    {WORD_NOT | WORD_AUX, "can't|cannot|don't|won't|doesn't|didn't|couldn't"},
    {WORD_NOT | WORD_TWIN, "neither|nor"},
    {WORD_NOT | WORD_THINK, "doubt|doubtful|unsure|unclear|uncertain|skeptical|sceptical"},
    {WORD_OUT,
     "eliminate|eliminates|eliminating|eliminated|rule out|rules out|ruling out|ruled out|"
     "exclude|excludes|excluding|excluded|reject|rejects|rejecting|rejected|discard|discards|"
     "discarding|discarded|cross out|crossed out|crosses out|crossing out|cross off|crossed off|"
     "strike out|struck out|strike off|struck off|dismiss|dismisses|dismissed|dismissing|drop|"
     "dropping|dropped|refute|refutes|refuted|disqualify|disqualifies|disqualified|disprove|"
     "disproves|knocks out|knock out|rule|avoid|set aside|retract|withdraw|throw out|thrown out|"
     "toss out|disregard|contradict|contradicts|contradicted|rule it out"},
    {WORD_CASE | WORD_IF | WORD_AUX, "assuming|assuming that|provided|provided that"},
    {WORD_IF,
     "if|unless|suppose|supposing|assume|in case|only if|only when|as long as|hypothetically|"
     "imagine|pretend|had|otherwise|if not|depends on|depends|depending|depending on"},
    {WORD_MAY,
     "might|may|could|perhaps|maybe|possibly|potentially|conceivably|arguably|tentatively|"
     "plausibly|would have been|would've been|could have been|might have been|seemingly|"
     "superficially|partly|partially|half|mostly|for now|for the moment|as a possibility|"
     "as a candidate|in mind|in play|on the table"},
    {WORD_MAY | WORD_BE, "can be"},
    {WORD_MAY, "it is possible that|it's possible that|possible that|it is possible|it's possible"},
    {WORD_MAY | WORD_FILL, "plausible|possible|tempting|attractive|appealing|candidate|contender"},
    {WORD_OR, "or|and/or|vs|vs.|versus|or else|or maybe|or perhaps|or possibly"},
    {WORD_AND, "and|and also|as well as|along with|plus|together with"},
    {WORD_BUT,
     "but|however|yet|nevertheless|nonetheless|in fact|correction|actually|while|whereas|"
     "except that|that said|still|on the other hand"},
    {WORD_BUT | WORD_FIRST,
     "although|even though|though|despite|contrary to|in spite of|notwithstanding"},
    {WORD_OTHERS,
     "many|most people|people|student|students|person|somebody|someone|some|others|experts|"
     "critics|tempt|tempts|tempted|naive|naively|naïve|common mistake|common error|mistake|"
     "mistakes|mistakenly|common wrong|common misconception|commonly|wrong answer|"
     "textbook answer|previous answer|earlier answer|tempting|some people|friend|classmate|"
     "colleague|teacher|one might|one may|one could|you might|you may|you could|most readers|"
     "readers|skeptics|sceptics|proponents|defenders|might think|may think|would think|might say|"
     "might expect|popular|trap|lure|novice|beginners|first instinct|at first glance|instinct|"
     "intuition says"},
    {WORD_EXCEPT,
     "except|except for|but for|other than|apart from|besides|save|save for|aside from|"
     "with the exception of|bar|barring|excepting"},
    {WORD_ONLY | WORD_MOST,
     "only|just|alone|solely|uniquely|nothing but|none but|no one but|none other than"},
    {WORD_IT,
     "it|this|that|which|it's|that's|these|what|here|there|one|everything|all of this|it'd|it'll|"
     "who|they|evidence|data|result|results|description|value|analysis|reasoning|observation|"
     "fact|facts|calculation|computation|such|those"},
    {WORD_IT | WORD_BE, "it's|that's|'tis|here's|what's"},
    {WORD_I,
     "i|we|i'd|i'll|i'm|we'd|we'll|we're|i've|we've|let's|let us|you|my|our|me|us|you'd|"
     "you should|one should|one must|one can|myself|your|you're|you'll|let me|i am|gonna"},
    {WORD_FIRST,
     "initially|first guess|first choice|first answer|first try|first attempt|first reaction|"
     "i first|initial guess|initial answer|initial thought|initial pick|initial choice|"
     "initial instinct|initial reaction|initial impression|originally|at first|first glance|"
     "first i|first instinct|earlier|previously|first thought|first impression|first sight|"
     "at first sight|at one point|used to|originally chosen|i thought|we thought|i'd thought|"
     "wrote|said|first pick|leaned|leaned towards|leaned toward|was going to|was about to"},
    {WORD_WAIT,
     "wait|hold on|actually, no|actually no|no wait|no, wait|let me fix|let me correct|hmm|hmmm|"
     "hmmmm|hm|let me recheck|let me reconsider|let me redo|let me recompute|let me recalculate|"
     "let me revisit|let me rethink|let me reread|let me re-read|let me check|let me double|"
     "let me re-check|let me re-examine|that's wrong|that is wrong|that's not right|"
     "that is not right|can't be right|cannot be right|made a mistake|made an error|correction|"
     "on second thought|on second thoughts|misread|oops|edit:|scratch that|never mind|nevermind|"
     "strike that|my mistake|i was wrong|take that back|i retract|i withdraw|i take it back|"
     "not quite right|disregard that|ignore that|on reflection that is|that was wrong|"
     "that was a mistake|that is incorrect|that's incorrect|i was mistaken|sorry"},
    {WORD_YES,
     "yes|confirm|confirms|confirmed|confirming|checks out|this is right|this is fine|"
     "this is correct|that is right|that is fine|that is correct|that's right|that's fine|"
     "that's correct|indeed|consistent|as before|stands|holds|still holds|agrees"},
    {WORD_STUDY,
     "analysis|evaluation|breakdown|review|examine|examining|consider|considering|evaluate|"
     "evaluating|analyze|analyse|analyzing|analysing|check|checking|test|testing|try|trying|"
     "discuss|discussing|look at|looking at|assess|assessing|reviewing|compare|comparing|verify|"
     "verifying|take|turn to|turning to|start with|starting with|back to|about|next|regarding|"
     "as for|inspect|weigh|weighing|revisit|recheck|understand|investigate|explore|go through|"
     "see if|concerning"},
    {WORD_WHY,
     "because|since|as|given|given that|due|due to|owing to|thanks to|seeing that|based on|"
     "in that"},
    {WORD_FILL,
     "the|a|an|of|to|for|among|amongst|from|by|on|at|then|now|here|there|clearly|obviously|"
     "certainly|definitely|probably|likely|almost certainly|surely|really|simply|just|still|also|"
     "too|very|quite|rather|instead|indeed|actually|essentially|precisely|exactly|out|logically|"
     "consistent|following|above|below|shown|found|stated|represented|listed|described|presented|"
     "as follows|number|item|given|again|in this case|to me|per|all|well|fairly|pretty|therefore|"
     "undoubtedly|presumably|evidently|apparently|in my view|in my opinion|considered|as|that|"
     "with|our|my|its|up|down|this time|for me|uniquely|directly|strongly|in full|like|prob|"
     "little doubt|in my judgement|in my judgment|in my estimation|to my mind|last|remaining|"
     "by far|for sure|without doubt|without a doubt|no doubt|without any doubt|easily|easy|e.g.|"
     "etc.|cf.|approx.|okay|ok|alright|right|yes|sure|great|done|one|two|three|four|both|me|us|"
     "only|even|in fact|of course|after all|in turn|respectively|hereby|ahead|going|final|real|"
     "true|actual|logical|overall|to the question|to this question|to this problem|"
     "for this question|firmly|solidly|squarely|unambiguously|unmistakably|necessarily|"
     "consequently|equally|namely|i believe|i think|it seems|i'd say|i would say|i'm sure"},
    {WORD_ALL,
     "all|every|everything|everyone|each|any|anything|none|nothing|no|others|rest|other|else|"
     "remaining|no one|the others|the rest|all others|every other|the other"},
    {WORD_CASE,
     "for|with|without|under|in|when|where|at|during|given|in case of|in the case of|absent"},
    {WORD_ASK, "why|how|whether|who|what if|what about|is it|isn't it|could it be"},
    {WORD_BOTH, "both|several|multiple|two|more than one|two of"},
    {WORD_BOTH | WORD_ALL, "each of|any of|all of|all three|all four"},
    {WORD_TWIN,
     "between|either|neither|nor|torn|hesitate|hesitating|undecided|toss-up|tie|tied|tossup|"
     "so does|so is|so do|so are|so would|so could"},
    {WORD_THING,
     "vitamin|plan|hepatitis|graph|vertex|vertices|equation|equations|eq|eqs|figure|figures|fig|"
     "figs|part|parts|case|cases|point|points|step|steps|appendix|section|table|type|class|group|"
     "compound|matrix|student|player|person|team|company|grade|firm|block|set|line|angle|vector|"
     "event|sample|wire|blood|field|phase|region|gene|ion|node|box|species|protein|enzyme|"
     "molecule|reaction|paragraph|lemma|theorem|row|column|agent|city|town|country|state|level|"
     "particle|body|ball|planet|star|car|train|patient|suspect|witness|article|subsection|"
     "influenza|major|minor|sharp|flat|cells|right angle|right angles|right ideal|right ideals|"
     "right triangle|right side|"
     "right hand|right-hand|right-angled|let"},
    {WORD_THAN,
     "than|unlike|versus|over|rather than|instead of|compared to|compared with|and not|but not|"
     "nor"},
    {WORD_CLAIM, "according to"},
    {WORD_CLAIM,
     "says|said|claims|claimed|argues|states|asserts|believes|thinks|describes|mentions|refers|"
     "talks|would say|suggests|proposes|uses|assumes"},
    {WORD_AFTER,
     "best|it|then|the|on|only|here|as|which|alone|from|to|over|based|instead|rather|by|exactly|"
     "correctly|clearly|perfectly|precisely|definitely|obviously|probably|certainly|in|se|kwa|"
     "also|still|after|now|really|actually|accurately|itself"},
    {WORD_SO | WORD_END,
     "by elimination|by exclusion|by default|by deduction|by process of elimination"},
    {WORD_END,
     "seçeneğidir|seçeneği|şıkkıdır|please|imo|imho|all the way|hands down|full stop|period|"
     "no question|no contest|trust me|without hesitation|for me|final answer|thanks|thank you|"
     "for sure|without doubt|no doubt|in your list|in the list|on your list|on the list|"
     "in the options|among the options|of the options|in the question|in your options"},
    {RANK(1), "first|primera|première|erste|prima"},
    {RANK(2), "second"},
    {RANK(3), "third"},
    {RANK(4), "fourth"},
    {RANK(5), "fifth"},
    {RANK(6), "sixth"},
    {RANK(7), "seventh"},
    {RANK(8), "eighth"},
    {RANK(9), "ninth"},
    {RANK(10), "tenth"},
};
/* clang-format on */

const size_t letter_n_english = sizeof letter_english / sizeof *letter_english;
