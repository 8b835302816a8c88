#include "evals/letter_words.h"

#include <pthread.h>
#include <string.h>

/* Entries of one class, separated by "|". */
typedef struct {
    word_class is;
    const char *entries;
} word_list;

#define RANK(n) (WORD_ORDER | (word_class)(n) << WORD_RANK_SHIFT)

/* clang-format off */
static const word_list english[] = {
    {WORD_ANSWER,
     "answer|answers|ans|ans.|answer_choice|answerchoice|answer_letter|correct_answer|final_answer|final answer|"
     "final_choice|correct_option|correct_choice|verdict|decision|conclusion|guess|selection|"
     "solution|vote|money|bet|nod|winner|response|prediction|answer key|key|tl;dr|tldr|tl dr|result"},
    {WORD_ANSWER | WORD_OPTION, "answer|choice|pick|label|candidate|contender"},
    {WORD_OPTION,
     "option|options|choice|choices|alternative|alternatives|statement|statements|letter|item|"
     "candidate|answer choice|answer option|opt|letter choice"},
    {WORD_OPTION | WORD_BOTH, "options|choices|alternatives|statements"},
    {WORD_RIGHT,
     "correct|correctly|right|best|better|true|valid|accurate|appropriate|proper|suitable|closest|"
     "nearest|strongest|stronger|spot on|just right|exception|odd one|odd one out|outlier|"
     "preferable|way to go|likeliest|safest|fittest|ideal|winning|matching|one left|right one|"
     "supported|what remains|intended|desired|final|chosen|selected|called for|bingo|"
     "the one|keyed|credited|well supported|supported by"},
    {WORD_FALSE, "false|incorrect|untrue|not true|not correct|inaccurate"},
    {WORD_FALSE | WORD_WRONG,
     "false|incorrect|untrue|inaccurate"},
    {WORD_WRONG,
     "wrong|invalid|impossible|unlikely|implausible|inconsistent|incompatible|flawed|irrelevant|"
     "distractor|distractors|mistaken|fail|fails|failed|violate|violates|contradict|contradicts|"
     "contradicted|out|off|too|weak|weaker|worse|worst|misses|ignores|untenable|unsupported|"
     "dead|nonsense|trap|inferior|insufficient|unsuitable|misleading|inadequate|drops|drop|"
     "dropped|struck|backwards|off topic|gone|lacks|overlooks|confuses|misread|misreads|reverses|"
     "inapplicable|excludable|unrelated|excessive"},
    {WORD_MOST, "most|more|least|only|single|far|by far"},
    {WORD_CHOOSE,
     "put my money on|put money on|choose|chose|choosing|pick|picking|picked|select|selecting|selected|go with|going with|"
     "went with|gone with|go for|going for|went for|opt for|opting for|opted for|say|stick with|"
     "sticking with|stay with|staying with|stand by|standing by|settle on|settling on|settled on|"
     "settle for|settling for|settle upon|lean to|lean toward|lean towards|leaning to|"
     "leaning toward|leaning towards|lean on|lean|leaning|vote for|voting for|vote|"
     "confident in|confident of|mark|marking|tick|ticking|favor|favour|favoring|favouring|prefer|submit|submitting|circle|circling|lock in|locking in|locked in|bet on|betting on|"
     "land on|landing on|landed on|land at|end up with|end up at|end up on|end up|ending up with|"
     "ending up at|ending up on|come down on|come down to|plump for|plumping for|side with|"
     "siding with|back|backing|endorse|endorsing|put down|put|report|conclude with|conclude|"
     "infer|deduce|guess|guessing|take|taking|accept|answer|answered|answering|answer with|answering with|enter|entering|commit to|"
     "committing to|settle|write|write down|conclude for|fill in|bubble in|plumped for|sticking to|"
     "stick to|declare|shade|go|"
     "nominate|adopt|arrive at|arriving at|arrives at|arrived at|come out at|come to"},
    {WORD_CHOOSE | WORD_STUDY, "keep|keeping|retain|retaining"},
    {WORD_THINK,
     "think|believe|suspect|suppose|feel|reckon|convinced|certain|sure|confident|bet|say|conclude|"
     "deduce|infer|find|see|seem|inclined to|inclined toward|inclined towards|"
     "assume|presume|guess|judge"},
    {WORD_STUDY | WORD_THINK, "regard|rate|deem|view|see|find|reckon|call"},
    {WORD_POINT,
     "correspond to|corresponds to|corresponding to|correspond with|corresponds with|"
     "corresponding with|point to|points to|pointing to|point at|points at|point toward|"
     "points toward|point towards|points towards|pointing toward|pointing towards|lead to|"
     "leads to|leading to|leads us to|lead us to|leads me to|lead me to|leading us to|"
     "leading me to|led to|brings us to|brings me to|equivalent to|identical to|equal to|"
     "closest to|converge on|converges on|converge to|converges to|converge at|match|matches|"
     "matching|matched|matched by|support|supports|supporting|consistent with|agree with|"
     "agrees with|agreement with|accordance with|in line with|align with|aligns with|"
     "in favor of|in favour of|imply|implies|suggest|suggests|indicate|indicates|confirm|"
     "confirms|confirming|fit|fits|mean|means|give|gives|giving|yield|yields|yielding|get|"
     "obtain|i.e.|i.e|that is|namely|make|makes|making|narrows it to|narrow it to|narrowed it to|looking for|makes it|make it|making it|makes that|making that|makes this|render|renders|narrow down to|"
     "narrows down to|narrowed down to|narrows to|narrow it down to|narrows it down to|reach|reaches|reaching|equals|"
     "equal|favors|favours|favor|favour|favoring|select|selects|identify|identifies|identifying|"
     "captured by|expressed by|expressed in|stated in|stated by|found in|given by|given in|given as|"
     "listed as|listed in|listed under|shown in|labelled|labeled|described by|described in|"
     "represented by|reflected in|elimination|process of elimination|exclusion|deduction|"
     "default|answered by|satisfied by|met by|explained by|singles out|single out|leave|"
     "belongs to|falls under|came out as|comes out as|come out as|result in|"
     "results in|resulting in|one under|consistent only with|agrees only with"},
    {WORD_FIT,
     "fits|fit|matches|match|satisfies|satisfy|explains|explain|agrees|works|work|holds|hold|stands|wins|"
     "describes|captures|reflects|represents|answers|meets|accounts|survives|survive|makes sense|"
     "makes the most sense|make sense|sounds|aligns|does|obeys|comes out ahead|comes out on top|"
     "comes out best|prevails|follows|applies|qualifies|passes|checks out|agree|gets it right|"
     "does the job|beats|takes it|carries the day|addresses|conforms|complies|covers|"
     "corresponds|tops|has it|delivers|summarizes|summarises|expresses|belongs|suits|"
     "identifies|is left|are left|has the right|has the best|has the strongest|has the most|"
     "has the greatest|has the highest|has the clearest|has the correct|has my vote|has my|"
     "gets my|gets our|gets the|earns my|wins my|receives my|takes my|has our|"
     "gives the right|gives the correct|gives the|gives exactly|gives us the|states exactly|"
     "states precisely|states this|predicts|reproduces|respects|honors|honours|"
     "mirrors|fulfills|fulfils|achieves|supports"},
    {WORD_LEAVE,
     "wins|prevails|leave|leaves|leaving|is left|are left|left with|left standing|remain|remains|remaining|stay|stays|survive|survives|"
     "leaves us with|leaving us with|leaves me with|leaving me with|leave us with|still standing|"
     "last one standing|survivor|down to"},
    {WORD_BE,
     "strikes me as|strikes us as|is|was|be|are|were|been|being|'s|is on|seems|seem|appears|appear|looks|look|turns out|"
     "turned out|proves|proved|becomes|became|equals|remains|stays|lies in|rests on|rests with|"
     "goes to|goes for|falls on|sits with|comes out as|comes out to|works out|"
     "boils down to|comes down to|reads|lands on|seems to|appears to|happens|ends up"},
    {WORD_AUX,
     "would|must|should|will|can only|could only|has to|have to|had to|ought to|got to|gotta|"
     "can|has|have|had|do|does|did|am|shall|let|'d|'ll|'re|'m|has got to|have got to|need to|"
     "needs to|want to|gonna|going to|go|please"},
    {WORD_SO,
     "so|therefore|thus|hence|consequently|accordingly|thereby|ergo|in conclusion|in summary|"
     "to conclude|to sum up|all in all|overall|finally|in the end|ultimately|as a result|"
     "in short|in other words|put differently|simply put|that is to say|then|so that|on balance|it follows that|in sum|conclusively|bottom line|"
     "putting it all together|everything considered|all things considered|on reflection|"
     "on second thought|upon reflection|on closer inspection|on inspection|upon inspection|"
     "on a closer look|after careful consideration|after consideration|by comparison|for these reasons|for this reason|that's why|"
     "which is why|that is why"},
    {WORD_NOT,
     "not|never|cannot|can't|couldn't|don't|doesn't|didn't|won't|wouldn't|shouldn't|isn't|"
     "aren't|wasn't|weren't|neither|nor|no|n't|none|nothing|hardly|mustn't|hasn't|haven't|"
     "needn't|nobody|no longer|by no means|nowhere near|far from|rather than|instead of|nope"},
    {WORD_NOT | WORD_BE, "isn't|aren't|wasn't|weren't|ain't"},
    {WORD_NOT | WORD_AUX, "can't|cannot|don't|won't|doesn't|didn't|couldn't"},
    {WORD_NOT | WORD_TWIN, "neither|nor"},
    {WORD_NOT | WORD_THINK, "doubt|doubtful|unsure|unclear|uncertain|skeptical|sceptical"},
    {WORD_OUT,
     "eliminate|eliminates|eliminating|eliminated|rule out|rules out|ruling out|ruled out|exclude|"
     "excludes|excluding|excluded|reject|rejects|rejecting|rejected|discard|discards|"
     "discarding|discarded|cross out|crossed out|crosses out|crossing out|cross off|crossed off|"
     "strike out|struck out|strike off|struck off|dismiss|dismisses|dismissed|dismissing|drop|dropping|"
     "dropped|refute|refutes|refuted|disqualify|disqualifies|disqualified|disprove|disproves|"
     "knocks out|knock out|rule|avoid|set aside|retract|withdraw|throw out|thrown out|toss out|disregard|"
     "contradict|contradicts|contradicted|rule it out"},
    {WORD_CASE | WORD_IF | WORD_AUX, "assuming|assuming that|provided|provided that"},
    {WORD_IF,
     "if|unless|suppose|supposing|assume|in case|only if|"
     "only when|as long as|hypothetically|imagine|pretend|had|otherwise|if not|"
     "depends on|depends|depending|depending on"},
    {WORD_MAY,
     "might|may|could|perhaps|maybe|possibly|potentially|conceivably|arguably|tentatively|"
     "plausibly|would have been|would've been|could have been|might have been|seemingly|superficially|partly|partially|half|mostly|for now|for the moment|"
     "as a possibility|as a candidate|in mind|in play|on the table"},
    {WORD_MAY | WORD_BE, "can be"},
    {WORD_MAY, "it is possible that|it's possible that|possible that|it is possible|it's possible"},
    {WORD_MAY | WORD_FILL,
     "plausible|possible|tempting|attractive|appealing|candidate|contender"},
    {WORD_OR, "or|and/or|vs|vs.|versus|or else|or maybe|or perhaps|or possibly"},
    {WORD_AND, "and|and also|as well as|along with|plus|together with"},
    {WORD_BUT,
     "but|however|yet|nevertheless|nonetheless|in fact|correction|actually|while|whereas|"
     "except that|that said|still|on the other hand"},
    {WORD_BUT | WORD_FIRST, "although|even though|though|despite|contrary to|in spite of|notwithstanding"},
    {WORD_OTHERS,
     "many|most people|people|student|students|person|somebody|someone|some|others|experts|"
     "critics|tempt|tempts|tempted|naive|naively|naïve|common mistake|common error|mistake|mistakes|mistakenly|"
     "common wrong|common misconception|commonly|wrong answer|textbook answer|previous answer|earlier answer|tempting|"
     "some people|friend|classmate|colleague|teacher|one might|one may|one could|you might|"
     "you may|you could|most readers|readers|skeptics|sceptics|proponents|defenders|"
     "might think|may think|would think|might say|might expect|"
     "popular|trap|lure|novice|beginners|first instinct|at first glance|instinct|intuition says"},
    {WORD_EXCEPT,
     "except|except for|but for|other than|apart from|besides|save|save for|aside from|"
     "with the exception of|bar|barring|excepting"},
    {WORD_ONLY | WORD_MOST, "only|just|alone|solely|uniquely|nothing but|none but|no one but|none other than"},
    {WORD_IT,
     "it|this|that|which|it's|that's|these|what|here|there|one|everything|all of this|it'd|it'll|"
     "who|they|evidence|data|result|results|description|value|analysis|reasoning|observation|"
     "fact|facts|calculation|computation|such|those"},
    {WORD_IT | WORD_BE, "it's|that's|'tis|here's|what's|there's"},
    {WORD_I,
     "i|we|i'd|i'll|i'm|we'd|we'll|we're|i've|we've|let's|let us|you|my|our|me|us|you'd|"
     "you should|one should|one must|one can|myself|your|you're|you'll|let me|i am|gonna"},
    {WORD_FIRST,
     "initially|first guess|first choice|first answer|first try|first attempt|first reaction|i first|initial guess|initial answer|initial thought|initial pick|initial choice|initial instinct|"
     "initial reaction|initial impression|originally|at first|first glance|first i|first instinct|earlier|"
     "previously|first thought|first impression|first sight|at first sight|at one point|"
     "used to|originally chosen|i thought|we thought|i'd thought|wrote|said|first pick|leaned|leaned towards|leaned toward|was going to|was about to"},
    {WORD_WAIT,
     "wait|hold on|actually, no|actually no|no wait|no, wait|let me fix|let me correct|hmm|hmmm|hmmmm|hm|let me recheck|let me reconsider|let me redo|let me recompute|"
     "let me recalculate|let me revisit|let me rethink|let me reread|let me re-read|let me check|"
     "let me double|let me re-check|let me re-examine|that's wrong|that is wrong|that's not right|that is not right|"
     "can't be right|cannot be right|made a mistake|made an error|correction|on second thought|"
     "on second thoughts|misread|oops|edit:|scratch that|never mind|nevermind|strike that|"
     "my mistake|i was wrong|take that back|i retract|i withdraw|i take it back|not quite right|"
     "disregard that|ignore that|on reflection that is|that was wrong|that was a mistake|"
     "that is incorrect|that's incorrect|i was mistaken|sorry"},
    {WORD_YES,
     "yes|confirm|confirms|confirmed|confirming|checks out|this is right|this is fine|this is correct|that is right|"
     "that is fine|that is correct|that's right|that's fine|that's correct|indeed|consistent|"
     "as before|stands|holds|still holds|agrees"},
    {WORD_STUDY,
     "analysis|evaluation|breakdown|review|examine|examining|consider|considering|evaluate|evaluating|analyze|analyse|analyzing|"
     "analysing|check|checking|test|testing|try|trying|discuss|discussing|look at|looking at|assess|assessing|"
     "review|reviewing|compare|comparing|verify|verifying|take|turn to|turning to|start with|"
     "starting with|back to|about|next|regarding|as for|inspect|weigh|weighing|revisit|"
     "recheck|understand|investigate|explore|go through|see if|concerning"},
    {WORD_WHY,
     "because|since|as|given|given that|due|due to|owing to|thanks to|seeing that|"
     "based on|in that"},
    {WORD_FILL,
     "the|a|an|of|to|for|among|amongst|from|by|on|at|then|now|here|there|clearly|obviously|certainly|definitely|"
     "probably|likely|almost certainly|surely|really|simply|just|still|also|too|very|"
     "quite|rather|instead|indeed|actually|essentially|precisely|exactly|out|logically|"
     "consistent|following|above|below|shown|found|stated|represented|listed|described|"
     "presented|as follows|number|item|given|again|in this case|to me|per|all|well|fairly|"
     "pretty|therefore|undoubtedly|presumably|evidently|apparently|in my view|in my opinion|considered|"
     "as|that|with|our|my|its|up|down|this time|for me|uniquely|directly|strongly|"
     "in full|like|prob|little doubt|in my judgement|in my judgment|in my estimation|to my mind|last|remaining|by far|for sure|without doubt|without a doubt|no doubt|without any doubt|easily|"
     "easy|e.g.|etc.|cf.|approx.|okay|ok|alright|right|yes|sure|great|done|one|two|three|four|both|me|us|only|even|"
     "in fact|of course|after all|in turn|respectively|hereby|ahead|going|final|real|"
     "true|actual|logical|overall|to the question|to this question|to this problem|for this question|firmly|solidly|"
     "squarely|unambiguously|unmistakably|necessarily|consequently|equally|namely|"
     "i believe|i think|it seems|i'd say|i would say|i'm sure"},
    {WORD_ALL,
     "all|every|everything|everyone|each|any|anything|none|nothing|no|others|rest|other|else|"
     "remaining|no one|the others|the rest|all others|every other|the other"},
    {WORD_CASE,
     "for|with|without|under|in|when|where|at|during|given|in case of|in the case of|absent"},
    {WORD_ASK, "why|how|whether|who|what if|what about|is it|isn't it|could it be"},
    {WORD_BOTH,
     "both|several|multiple|two|more than one|two of"},
    {WORD_BOTH | WORD_ALL, "each of|any of|all of|all three|all four"},
    {WORD_TWIN,
     "between|either|neither|nor|torn|hesitate|hesitating|undecided|toss-up|tie|tied|tossup|"
     "so does|so is|so do|so are|so would|so could"},
    {WORD_THING,
     "vitamin|plan|hepatitis|graph|vertex|vertices|equation|equations|eq|eqs|figure|figures|fig|figs|"
     "part|parts|case|cases|point|points|step|steps|appendix|section|table|type|class|group|"
     "compound|matrix|student|player|person|team|company|grade|firm|block|set|line|angle|"
     "vector|event|sample|wire|blood|field|phase|group|region|gene|ion|node|box|species|"
     "protein|enzyme|molecule|reaction|paragraph|lemma|theorem|row|column|agent|city|town|"
     "country|state|level|particle|body|ball|planet|star|car|train|train|patient|suspect|"
     "witness|article|subsection|influenza|major|minor|sharp|flat|cells|"
     "right angle|right angles|right triangle|right side|right hand|right-hand|right-angled|let"},
    {WORD_THAN, "than|unlike|versus|over|rather than|instead of|compared to|compared with|and not|but not|nor"},
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
    {WORD_END, "seçeneğidir|seçeneği|şıkkıdır|please|imo|imho|all the way|hands down|full stop|period|no question|no contest|trust me|"
     "without hesitation|for me|final answer|thanks|thank you|for sure|without doubt|no doubt"},
};

static const word_list ordinals[] = {
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

/* German, Dutch, Swedish, French, Spanish, Portuguese, Italian, Polish, Russian, Ukrainian, Greek,
 * Turkish, Indonesian, Vietnamese, Swahili, Yoruba, Arabic, Persian, Hindi, Bengali, Thai, Chinese,
 * Japanese, Korean. */
static const word_list foreign[] = {
    {WORD_ANSWER,
     "antwort|lösung|antwoord|svar|svaret|réponse|bon choix|respuesta|resposta|risposta|gabarito|"
     "solución|solução|soluzione|otvet|ответ|ответом|відповідь|απάντηση|"
     "cevap|cevabı|yanıt|jawaban|jawabannya|đáp án|câu trả lời|chọn|odpowiedź|odpowiedź to|odpowiedzią jest|jibu|"
     "jawabu|ìdáhùn|idahun|الإجابة|الاجابة|الجواب|إجابة|پاسخ|جواب|উত্তর|উত্তরটি|उत्तर|जवाब|"
     "คำตอบ|ตอบ|答案|答え|正解|正答|回答|解答|結論|결론|정답|답변|답안|답|选择|選擇|选|選|应选|應選|fazit|elección|choix"},
    {WORD_OPTION,
     "antwort|aussage|antwortmöglichkeit|l'option|réponse|choix|proposition|opción|alternativa|"
     "opção|opzione|l'opzione|letra|lettre|lettera|inciso|respuesta|resposta|risposta|вариант|"
     "вариантом|буква|pilihan|opsi|huruf|jawaban|الخيار|الحرف|विकल्प|উত্তর|বিকল্প|উত্তর|उत्तर|ข้อ|ตัวเลือก|chaguo|herufi|"
     "đáp án|phương án|lựa chọn|seçenek|seçeneği|seçeneğidir|şık|şıkkı|şıkkıdır|harfi|optie|odpowiedź|litera|选项|選項|選択肢|"
     "선택지|보기|option|答案|项|項|번"},
    {WORD_RIGHT,
     "zu wählen|richtig|richtige|richtigen|korrekt|korrekte|beste|rätt|correcte|correct|bonne|juste|exacte|"
     "exact|correcta|correcto|correta|correto|certa|certo|corretta|corretto|esatta|esatto|giusta|giusto|adecuada|"
     "apropiada|poprawna|prawidłowa|правильный|правильным|правильно|верный|верным|верно|верен|правильна|"
     "doğru|doğrudur|benar|tepat|sahihi|lililo sahihi|đúng|đúng nhất|chính xác|tó tọ́|tó tọ̀nà|tọ́|tó pé|"
     "الصحيحة|الصحيح|صحيحة|صحيح|صحیح|درست|सही|সঠিক|ที่ถูกต้อง|ถูกต้อง|ที่ถูก|正确|正確|正しい|最も適切|適切|最适切|最合适|"
     "最佳|对的|옳|올바른|올바르|맞|适切|correcto|richtige|convient|juiste|juist|onjuist"},
    {WORD_RIGHT | WORD_ANSWER, "正解|정답|richtige antwort|正答"},
    {WORD_FALSE | WORD_WRONG,
     "falsch|falsche|falso|falsa|fausse|faux|incorrecta|incorrecto|incorreta|incorreto|"
     "неверно|неверный|неверен|неверна|неверны|неправильно|неправильный|неправильна|неправилен|неправильны"},
    {WORD_WRONG,
     "errada|errado|errónea|erróneo|sbagliata|sbagliato|fausse|faux|scheidet|scheiden|"
     "entfällt|weg|fällt|incorrecte|verkeerd|vervalt|yanlış|yanlıştır|elenir|elendi|salah|adalah salah|sai|خاطئ|خاطئة|غلط|ผิด|odpada|"
     "отпадает|отпадают|исключается|исключаются|исключаем|исключён|éliminé|éliminée|exclu|exclue|écarter|descarta|descartada|esclusa|escludere|scartata|গলত|ভুল|गलत|"
     "不对|不正确|不正確|错|錯|错误|錯誤|间违|間違|間違っている|誤り|誤|を除外|は不適|不符合|不符|被排除|可以排除|排除|틀|틀렸|"
     "excluída|eliminada"},
    {WORD_CHOOSE,
     "dirais|choisirais|prendrais|choisir|retenir|diría|elegiría|escogería|elegir|escoger|escolheria|"
     "escolher|diria|direi|sceglierei|scegliere|würde sagen|wähle|wählen|nehmen|entscheide mich für|nehme|elijo|escojo|elegimos|escolho|scelgo|choisis|"
     "choisissons|opte pour|retiens|retenons|wybieram|kies|memilih|выбираю|выбираем|kiezen|väljer|"
     "我选|我選|選ぶ|应选择|應選擇|应选|选择|選擇|选|選|chọn|nachagua|seçiyorum|tercih|me quedo con|mi quedo con|fico com|tippe auf"},
    {WORD_THINK, "denke|glaube|pense|crois|creo|acho|penso|думаю|считаю|düşünüyorum|认为|認為|思う|생각"},
    {WORD_RIGHT, "を選びます|を選ぶ|を選択|を選択します|を選んだ|를 선택합니다|를 선택|을 선택|를 고르겠습니다|를 고릅니다|가 맞습니다"},
    {WORD_FIT,
     "trifft|stimmt|passt|gilt|cumple|encaja|convient|conviene|confère|vale|calza|soddisfa|satisface|"
     "подходит|符合|成立|符合题意|合适|fits"},
    {WORD_LEAVE,
     "bleibt|verbleibt|bleiben|übrig|reste|restent|queda|quedan|resta|restam|rimane|zostaje|"
     "blijft|остаётся|остается|剩下|只剩|只剩下|tersisa|เหลือ|残る|残るのは|남는 것은|남는|kalır|kalıyor"},
    {WORD_BE,
     "ist|sind|lautet|wäre|heißt|est|serait|sont|es|sería|é|seria|è|sarebbe|adalah|yaitu|ialah|là|"
     "jest|ni|ndilo|är|هي|هو|است|है|হল|হলো|হবে|होगा|это|является|は|が|은|는|이|가|应该是|應該是|应为|應為|"
     "应是|是|为|為|คือ|就是|となり|になり|c'est|ce serait|είναι|será|son|bedeutet|entspricht|соответствует|"
     "correspond à|corresponde a|corrisponde a|に対応|对应|對應|stimmt"},
    {WORD_IT | WORD_BE, "c'est|ce serait|es ist|das ist|es la|il s'agit de|это"},
    {WORD_SO,
     "also|daher|somit|folglich|deshalb|damit|donc|ainsi|alors|por tanto|por lo tanto|entonces|"
     "así|portanto|então|logo|assim|quindi|dunque|pertanto|следовательно|итак|значит|таким образом|поэтому|dus|"
     "zatem|więc|jadi|oleh karena itu|vậy|do đó|vì vậy|hivyo|kwa hivyo|nítorí náà|dolayısıyla|sonuç olarak|"
     "لذلك|إذن|अतः|इसलिए|সুতরাং|তাই|ดังนั้น|所以|因此|故|综上|综上所述|したがって|よって|따라서|그러므로|结论"},
    {WORD_NOT,
     "nicht|keine|kein|weder|niet|geen|inte|pas|n'est pas|n'est|no es|no|non è|non|não é|não|"
     "не|ни|nie|değil|değildir|bukan|không|không phải|si|sio|siyo|ليس|ليست|لا|नहीं|নয়|ไม่|ไม่ใช่|不|不是|不选|没有|ではな|じゃな|でな|"
     "ではない|ではなく|じゃなく|でなく|아니|아닙니다|이 아니|가 아니|이 아니라|δεν|nem|bukanlah|ne... pas"},
    {WORD_OUT,
     "schließe|schließen|ausschließen|élimine|éliminer|éliminons|exclut|exclure|elimina|eliminamos|"
     "descarto|descartamos|descartar|eliminiamo|scarto|escludo|escludiamo|исключаем|исключить|"
     "elenebilir|排除|除外"},
    {WORD_IF, "wenn|falls|sofern|si|se|sinon|sonst|si no|senão|altrimenti|если|иначе|jika|nếu|ikiwa|eğer|"
              "إذا|अगर|यदि|যদি|ถ้า|如果|若|もし|만약|dépend|depende|hängt|зависит|selon"},
    {WORD_MAY,
     "könnte|vielleicht|möglicherweise|pourrait|peut-être|podría|quizás|tal vez|poderia|talvez|"
     "potrebbe|forse|возможно|может|mungkin|có thể|labda|belki|olabilir|可能|也许|かもしれ|아마|ربما|شاید|शायद|"
     "হতে পারে|อาจ|misschien|kan"},
    {WORD_OR,
     "oder|ni|ou|o|atau|veya|ya da|au|tabi|lub|of|eller|или|або|либо|或者|或|または|또는|이나|나|か|と|"
     "hoặc|หรือ|أو|یا|या|বা|ή|e|y|et|und|en|och|og|ve|dan|na|и|和|与|與|및|와|과|하고|や|以及|και|và|และ|"
     "و|और|এবং"},
    {WORD_BUT,
     "aber|doch|jedoch|sondern|hingegen|während|obwohl|mais|cependant|tandis|alors que|bien que|"
     "pero|sino|sin embargo|aunque|mientras|mas|porém|embora|enquanto|ma|bensì|mentre|sebbene|но|а|однако|хотя|"
     "tetapi|namun|nhưng|lakini|ama|ancak|fakat|لكن|बल्कि|लेकिन|কিন্তু|แต่|但是|但|而|而不是|然而|しかし|하지만|그러나|ale"},
    {WORD_OTHERS, "viele|manche|beaucoup|certains|muchos|algunos|muitos|alguns|molti|alcuni|многие|некоторые|有人|很多人|許多人|学生"},
    {WORD_ONLY,
     "nur|allein|einzig|seule|seul|plus que|solo|sólo|solamente|únicamente|única|único|apenas|só|"
     "somente|soltanto|tylko|alleen|только|лишь|hanya|chỉ|只|只有|のみ|だけ|만|yalnızca|sadece|केवल|শুধু"},
    {WORD_IT, "das|es|dies|ça|cela|ce|esto|eso|isso|isto|questo|ciò|это|ini|itu|đó|这|這|これ|それ|이것|bu|هذا|ذلك|यह|এটি"},
    {WORD_I, "il faut|on doit|hay que|bisogna|devemos|man muss|man sollte|ich|wir|je|j'|nous|yo|nosotros|eu|nós|io|noi|я|мы|saya|kita|tôi|ben|biz|我|我们|我們|私|저는|나는|أنا|मैं|আমি|on|ik|wij|mijn|meine|ma|mi|minha|mia|mein|moja|mój|mon|mijn|benim|मेरा|আমার|私の|我的"},
    {WORD_FIRST, "zunächst|zuerst|anfangs|d'abord|au début|al principio|inicialmente|inizialmente|сначала|最初|一开始|처음|ban đầu|awalnya|önce|başta|primeramente"},
    {WORD_WAIT, "moment|halt|attends|espera|espere|aspetta|подожди|подождите|tunggu|khoan|等等|不对|待って|잠깐|잠깐만|korrektur|correction|corrección|correção|correzione"},
    {WORD_WHY, "weil|da|denn|parce que|puisque|porque|ya que|pues|porque|pois|já que|perché|poiché|так как|потому что|поскольку|karena|vì|bởi vì|kwa sababu|çünkü|için|olduğu için|لأن|क्योंकि|কারণ|เพราะ|因为|因為|由于|なぜなら|ので|なので|때문|because|ponieważ|omdat|eftersom"},
    {WORD_FILL,
     "die|der|das|den|la|el|le|l'|o|os|as|il|lo|un|une|una|uma|eine|ein|de|het|l'option|l'opzione|под|"
     "под буквой|eindeutig|claramente|klar|noch|plus|que|qui|la seule|final|finale|"
     "cuối cùng|yang|paling|akhir|สุดท้าย|náà|lililo|的|です|である|だ|となります|になります|입니다|이다|"
     "다|합니다|よ|ね|了|下|definitiv|definitive|definitiva|definitivo|النهائية|frage|question|pregunta|"
     "über|pour|cette|esta|本题|故本题|最终|该|dir|dır|dur|nhé|ạ|जो|तो|হচ্ছে|项|項|也|就|来|其中|ten|ta|это|т.е.|أن|एक|"
     "en|der frage|auf diese frage|na|bei|unter|von|vom|zur|zum|du|della|do|da|do que|most|mest|für|alle"},
};
/* Czech, Slovak, Hungarian, Romanian, Finnish, Estonian, Danish, Norwegian, Croatian, Serbian,
 * Bulgarian, Catalan, Lithuanian, Tagalog, Hebrew, Persian, Urdu, Tamil, Telugu, Marathi, Gujarati,
 * Hausa, Malay. */
static const word_list more_foreign[] = {
    {WORD_ANSWER,
     "odpověď|odpoveď|válasz|megoldás|răspuns|răspunsul|raspuns|raspunsul|vastaus|vastaukseni|ratkaisu|vastus|"
     "svaret|svar|løsning|løsningen|odgovor|rješenje|одговор|отговор|отговорът|resposta|atsakymas|sagot|kasagutan|"
     "תשובה|התשובה|پاسخ|جواب|جواب یہ|பதில்|விடை|సమాధానం|జవాబు|उत्तर|જવાબ|amsa|amsar|jawapan|ответът|απάντηση"},
    {WORD_OPTION,
     "možnost|možnosť|variantu|varianta|varianty|válasz|lehetőség|opció|opțiunea|optiunea|varianta|litera|vaihtoehto|"
     "vastausvaihtoehto|variant|valik|mulighed|svarmulighed|alternativ|svaralternativ|alternativet|opcija|mogućnost|"
     "опција|вариант|opció|lletra|variantas|opsyon|titik|pagpipilian|אפשרות|תשובה|האפשרות|گزینه|گزینهٔ|گزینه‌ی|آپشن|"
     "விருப்பம்|தெரிவு|ఎంపిక|ఐచ్ఛికం|पर्याय|વિકલ્પ|zaɓi|jawapan|pilihan|επιλογή|svarsalternativ|variante|variant"},
    {WORD_RIGHT,
     "správná|správný|správne|správna|správně|helyes|jó|corect|corectă|corecta|corectul|oikea|oikein|õige|"
     "rigtig|rigtige|korrekt|korrekte|riktig|riktige|rett|rette|točan|točna|tačan|tačna|ispravan|ispravna|тачан|исправан|"
     "верен|верният|правилен|правилният|правилният|correcta|correcte|teisingas|tama|tamang|wasto|"
     "הנכונה|נכונה|נכון|صحیح|درست|درست ہے|சரியான|సరైన|योग्य|बरोबर|સાચો|daidai|betul|σωστή|σωστό|beste"},
    {WORD_BE,
     "je|jest|este|er|är|és|jesu|је|е|és|yra|ay|ang|הוא|היא|است|می‌باشد|ہے|ஆகும்|అవుతుంది|आहे|છે|ialah|είναι|tehát"},
    {WORD_SO,
     "proto|tedy|takže|tudíž|tehát|ezért|így|deci|așadar|prin urmare|astfel|joten|näin ollen|seega|derfor|altså|"
     "dakle|stoga|zato|дакле|следователно|per tant|doncs|todėl|kaya|samakatuwid|לכן|אם כן|بنابراین|پس|لہذا|எனவே|కాబట్టి|म्हणून|તેથી|don haka|άρα|επομένως|därför|alltså"},
    {WORD_NOT,
     "není|nie je|nem|nu|nu este|ei|ei ole|ikke|ikkje|nije|није|не е|no és|nėra|hindi|לא|אינה|אינו|نیست|نہیں|இல்லை|కాదు|नाही|નથી|bukan|δεν|inte|ei|nincs"},
    {WORD_WRONG,
     "špatně|nesprávná|nesprávně|chybná|nevyhovuje|hibás|helytelen|rossz|greșit|greșită|gresita|incorect|incorectă|väärä|väärin|vale|"
     "forkert|feil|galt|pogrešan|pogrešna|netočan|netočna|погрешан|грешен|incorrecta|neteisingas|mali|שגויה|שגוי|לא נכונה|نادرست|غلط|தவறானது|తప్పు|चूक|ખોટો|kuskure|λάθος|λανθασμένη"},
    {WORD_FILL, "az|că|cea|cel|tedy|ang|ng|sa|na|det|den|og|je to|að|הזו|ה|که|గా|ही|ο|η|το"},
    {WORD_BUT, "ale|však|azonban|dar|însă|mutta|kuid|ali|али|но|però|pero|ngunit|אבל|اما|لیکن|ஆனால்|కానీ|पण|પણ|amma|αλλά"},
    {WORD_MAY, "možná|talán|poate|ehkä|võib|måske|kanskje|možda|можда|може би|potser|galbūt|baka|siguro|אולי|شاید|ஒருவேళ|బహుశా|कदाचित|કદાચ|ίσως|kanske|mungkin"},
    {WORD_OR, "nebo|alebo|vagy|sau|või|eller|ili|или|arba|או|یا|அல்லது|లేదా|किंवा|અથવા|és|și|og|ו|و|اور|மற்றும்|మరియు|आणि|અને|και|samt"},
    {WORD_IF, "pokud|jestli|dacă|hvis|dersom|ako|ако|jei|kung|אם|اگر|என்றால்|ఒకవేళ|जर|જો|idan|εάν|αν"},
    {WORD_ONLY, "pouze|csak|doar|numai|vain|ainult|bare|samo|само|només|tik|lamang|רק|فقط|صرف|மட்டுமே|మాత్రమే|फक्त|માત્ર|kawai|μόνο|endast|bara"},
    {WORD_CHOOSE, "volím|vybírám|választom|valitsen|valin|vælger|velger|biram|бирам|избирам|renkuosi|pinipili ko|בוחר|انتخاب می‌کنم|επιλέγω"},
};
/* clang-format on */

enum { SLOTS = 16384, ENTRY_MAX = 48 };

#define HASH_START 2166136261U /* FNV-1a */

typedef struct {
    const char *at; /* NULL: the slot is free */
    unsigned char n;
    bool more;     /* a longer entry begins with it */
    word_class is; /* 0: it is only the beginning of entries */
} slot;

static slot slots[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static char small(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Copies at most ENTRY_MAX bytes of @text in small letters: ASCII, Latin-1, Cyrillic, and the D
 * with a stroke. */
static span fold(span text, char out[ENTRY_MAX]) {
    size_t n = text.n < ENTRY_MAX ? text.n : ENTRY_MAX;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text.s[i], before = i ? (unsigned char)text.s[i - 1] : 0;
        out[i] = small((char)c);
        if (before == 0xC3 && c >= 0x80 && c <= 0x9E)
            out[i] = (char)(c + 0x20);
        else if (before == 0xC4 && c == 0x90)
            out[i] = (char)0x91;
        else if (before == 0xD0 && c >= 0x90 && c <= 0x9F)
            out[i] = (char)(c + 0x20);
        else if (before == 0xD0 && c >= 0xA0 && c <= 0xAF) {
            out[i - 1] = (char)0xD1;
            out[i] = (char)(c - 0x20);
        }
    }
    return (span){out, n};
}

static uint32_t hash_step(uint32_t h, char c) {
    return (h ^ (unsigned char)c) * 16777619U;
}

/* The slot of the text of @n bytes, which has the hash @h, or the free slot where it belongs. */
static slot *find_slot(const char *text, size_t n, uint32_t h) {
    uint32_t i = (h ^ h >> 15) % SLOTS;
    for (;; i = (i + 1) % SLOTS) {
        slot *s = &slots[i];
        if (!s->at || (s->n == n && memcmp(s->at, text, n) == 0))
            return s;
    }
}

static bool is_alnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* True if a word of the entry may end before the byte @c. */
static bool is_break(char c) {
    return (unsigned char)c < 0x80 && !is_alnum(c);
}

/* Adds an entry, and the parts before its breaks. */
static void add_entry(const char *at, size_t n, word_class is) {
    uint32_t h = HASH_START;
    for (size_t i = 0; i < n; i++) {
        h = hash_step(h, at[i]);
        bool whole = i + 1 == n;
        if (!whole && !is_break(at[i + 1]))
            continue;
        slot *s = find_slot(at, i + 1, h);
        word_class had = s->at ? s->is : 0;
        *s = (slot){at, (unsigned char)(i + 1), s->more || !whole, had | (whole ? is : 0)};
    }
}

static void add_lists(const word_list *lists, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (const char *at = lists[i].entries; *at;) {
            size_t length = strcspn(at, "|");
            if (length)
                add_entry(at, length, lists[i].is | WORD_KNOWN);
            at += length + (at[length] == '|');
        }
}

static void build(void) {
    add_lists(english, sizeof english / sizeof *english);
    add_lists(ordinals, sizeof ordinals / sizeof *ordinals);
    add_lists(foreign, sizeof foreign / sizeof *foreign);
    add_lists(more_foreign, sizeof more_foreign / sizeof *more_foreign);
}

/* True if the bytes begin a character of a script that is written without spaces between words:
 * Thai, Chinese, Japanese, Korean. */
static bool is_unspaced(const char *s, size_t n) {
    unsigned char a = n ? (unsigned char)s[0] : 0, b = n > 1 ? (unsigned char)s[1] : 0;
    return (a == 0xE0 && (b == 0xB8 || b == 0xB9)) || (a >= 0xE3 && a <= 0xED);
}

/* True if an entry may end before @rest, which follows the byte @before. */
static bool ends_word(char before, span rest, bool unspaced) {
    if (rest.n && ((unsigned char)rest.s[0] & 0xC0) == 0x80)
        return false; /* inside a character */
    if (!rest.n || unspaced || is_unspaced(rest.s, rest.n))
        return true;
    bool inside = is_alnum(before) || (unsigned char)before >= 0x80;
    return !inside || !(is_alnum(rest.s[0]) || (unsigned char)rest.s[0] >= 0xC3);
}

size_t letter_word(span text, word_class *is) {
    (void)pthread_once(&once, build);
    uint32_t h = HASH_START;
    size_t best = 0;
    bool unspaced = is_unspaced(text.s, text.n);
    char window[ENTRY_MAX];
    span folded = fold(text, window);
    for (size_t n = 1; n <= folded.n && text.s[n - 1] != '\n'; n++) {
        h = hash_step(h, folded.s[n - 1]);
        span rest = {text.s + n, text.n - n};
        bool broken = !rest.n || is_break(rest.s[0]);
        if (!broken && !ends_word(text.s[n - 1], rest, unspaced))
            continue;
        const slot *s = find_slot(folded.s, n, h);
        if (s->at && s->is) {
            best = n;
            *is = s->is;
        }
        if (broken && !(s->at && s->more))
            break;
    }
    return best;
}
