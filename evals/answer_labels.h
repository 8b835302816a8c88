/* answer_labels.h - the words with which languages other than English state an answer, as parts of
 * a regular expression over the bytes of UTF-8. The rules for letters search the form of
 * letter_text.h, and extract_stated() the response itself. */
#ifndef SNAPMLA_EVALS_ANSWER_LABELS_H
/* clang-format off */
#define SNAPMLA_EVALS_ANSWER_LABELS_H

/* Nouns and verbs that introduce a letter: "answer", "correct option", "choose". */
#define ANSWER_NOUNS \
    "最(?:佳|合适的)答案|最合适的是|最も適切な(?:もの|選択肢|の)は|正しい(?:もの|の|選択肢)は|答案|答え|正解|正答|回答|正(?:确" \
    "|確)(?:的)?(?:选项|選項)|选择|選擇|选(?!(?:项|項|择|擇))|選(?!(?:项|項|択|擇))|正确的是|正確的是|解答|結論|결론|" \
    "정답|답변|답안|답|올바른 선택지|(?:[Rr]ichtige|[Kk]orrekte|[Bb]este) (?:Option|Aussage" \
    "|Antwortmöglichkeit)|[Bb]onne (?:option|proposition)|Antwort|[Aa]ntwoord|Lösung" \
    "|[Rr]ichtig ist|" \
    "[Rr]éponse|[Bb]on choix|[Rr]espuesta|[Rr]esposta|[Rr]isposta|[Gg]abarito|[Ss]olución" \
    "|[Ss]olução|[Ss]oluzione|" \
    "[Oo]tvet|(?:О|о)твет(?:ом)?|(?:(?:П|п)равильн|(?:В|в)ерн)ый вариант|(?:В|в)ідповідь|" \
    "الإجابة|الاجابة|الجواب|إجابة|الخيار الصحيح|پاسخ|جواب|উত্তর(?:টি)?|সঠিক বিকল্প|उत्तर" \
    "|जवाब|सही विकल्प|" \
    "[Jj]awaban(?:nya)?|Đáp án|đáp án|[Cc]âu trả lời|[Cc]họn|[Cc]evap|[Yy]anıt|[Dd]oğru" \
    " (?:seçenek|şık)|" \
    "[Oo]dpowiedź|[Jj]ibu|[Jj]awabu|Ìdáhùn|ìdáhùn|[Ii]dahun|คำตอบ|ตอบ|[Ss]var"

/* Words between the noun and the verb: "correct", "right", "for this question". */
#define ANSWER_ADJECTIVES \
    "correct[ao]?|corret[ao]|corrett[ao]|correcte|exact[ae]|juste|richtige|korrekte|final" \
    "|finale|" \
    "cert[ao]|esatt[ao]|giust[ao]|bonne|definitiv[ao]|adecuad[ao]|apropiad[ao]|" \
    "الصحيحة|الصحيح|النهائية|صحیح|درست|đúng(?: nhất)?|chính xác|cuối cùng|yang|benar|tepat" \
    "|paling|akhir|" \
    "poprawna|prawidłowa|doğru|правильный|ที่ถูกต้อง|ที่ถูก|สุดท้าย|ข้อ|sahihi|lililo" \
    "|sahihi|tó tọ́|tó tọ̀nà|tó pé|náà|является|" \
    "tọ́|的|选项|選項"

/* Verbs and particles: "is". */
#define ANSWER_VERBS \
    "ist|lautet|wäre|est|serait|es|sería|é|seria|è|sarebbe|is|adalah|yaitu|ialah|là|to|jest" \
    "|ni|är|" \
    "هي|هو|است|है|হল|হলো|হবে|होगा|это|" \
    "は|が|은|는|이|应该是|應該是|应为|應為|应是|是|为|為|คือ|应选|選|选|就是"

/* Words between the verb and the letter: "therefore". */
#define ANSWER_ADVERBS \
    "donc|also|daher|somit|folglich|eindeutig|por tanto|por lo tanto|entonces|portanto|então|" \
    "quindi|dunque|alors|следовательно|claramente"

/* "and" and "or" between two letters. */
#define ANSWER_OR_AND \
    "(?:oder|und|ou|et|o|y|e|atau|dan|ya|veya|ve|au|na|tabi|lub|i|of|en|eller|och|og)(?![a-z'])|" \
    "или|и|або|或者|或|和|与|與|및|または|또는|이나|나|와|과|하고|や|か|と|以及|και|hoặc|và|หรือ|และ|أو|یا|या|और|বা|এবং"

/* Articles and nouns directly before the letter. */
#define ANSWER_ARTICLES \
    "die|der|das|la|el|le|l'|a|o|lettre|letra|lettera|l'option|l'opzione|option|Option" \
    "|opción|opção|opzione|choix|" \
    "alternativa|inciso|вариант|буква|под буквой|选项|選項|選択肢|선택지|phương án|đáp án|huruf|pilihan|" \
    "opsi|letter|litera|harfi|الخيار|الحرف|विकल्प|বিকল্প|ข้อ|ตัวเลือก|chaguo|herufi|optie" \
    "|odpowiedź|" \
    "Antwort|réponse|respuesta|resposta|risposta"

/* Nouns before a letter that a predicate calls right: "Option C ist richtig". */
#define OPTION_NOUNS \
    "选项|選項|選択肢|答案|선택지|보기|Antwort|Option|Aussage|Antwortmöglichkeit|[Ll]'option|[Oo]ption" \
    "|[Rr]éponse|[Cc]hoix|" \
    "[Oo]pción|[Aa]lternativa|[Oo]pção|[Oo]pzione|[Ll]etra|[Ll]ettera|[Ii]nciso" \
    "|[Rr]espuesta|[Rr]esposta|[Rr]isposta|" \
    "(?:В|в)ариант|(?:О|о)твет|[Pp]ilihan|[Oo]psi|[Jj]awaban|الخيار|विकल्प|উত্তর|বিকল্প" \
    "|उत्तर|ข้อ|" \
    "ตัวเลือก|[Cc]haguo|(?:Đ|đ)áp án|[Pp]hương án|[Ll]ựa chọn|[Ss]eçenek"

/* What such a predicate says. */
#define OPTION_RIGHT \
    "(?:は|が|是|为|為)?\\s?(?:最も|最)?(?:正しい|正解|正确|正確|适切|適切)|(?:은|는|이|가)?\\s?(?:정답|옳|맞|올바)|" \
    "ist\\s(?:die\\s)?(?:also\\s|somit\\s|daher\\s)?(?:richtig|korrekt)|" \
    "est\\s(?:donc\\s)?(?:la\\s)?(?:bonne|correcte?|juste|exacte?)|" \
    "es\\s(?:por\\s(?:lo\\s)?tanto\\s)?(?:la\\s)?(?:correct|respuesta)|" \
    "é\\s(?:a\\s)?(?:portanto\\s)?(?:corret|resposta)|è\\s(?:la\\s|quella\\s)?(?:corrett" \
    "|risposta)|" \
    "(?:является\\s)?(?:верн|правильн)|" \
    "adalah\\s(?:jawaban\\syang\\s)?(?:yang\\s)?(?:paling\\s)?(?:benar|tepat)|" \
    "(?:هو|هي)\\s(?:الإجابة\\s|الجواب\\s)?(?:الصحيح)|(?:सही|সঠিক)|ถูกต้อง|(?:ni" \
    "|ndilo)\\s(?:jibu\\s)?sahihi|" \
    "(?:là\\s)?(?:đáp án\\s)?(?:chính xác|đúng)|(?:şıkkı\\s)?doğru"

/* What after a letter takes it back: "C ではない". */
#define ANSWER_DENIED \
    "(?:ではな|じゃな|でな|は間違|は誤|は正しくな|이 아니|가 아니|(?:은|는) (?:틀|아니)|(?:是)?(?:不对|不正确|不正確|错|錯|不是)|नहीं" \
    "|গলত|নয়|ভুল|गलत|" \
    "değil|yanlış|(?:es|é|est|è|ist|is|son) (?:incorr|fals|fauss|errad|errón|sbagl|nicht" \
    "|niet|onjuist)|no es|não é|n'est|non è|" \
    "не |неверн|неправильн|adalah salah|salah|bukan|là sai|sai|không|خاطئ|ليس|غلط|ผิด|ไม่" \
    "|si sahihi|sio|scheidet|scheiden|entfällt|fällt (?:weg|aus)|valt af|vervalt" \
    "|est (?:éliminé|exclu|à écarter)|se descarta|queda descartad|está (?:errad|descartad)" \
    "|è (?:da )?(?:esclus|escludere|scartat)|odpada|elenir|elendi" \
    "|не подход|исключа|отпада|不符合|不符|被排除|可以排除|を除外|は不適)"

/* clang-format on */

#endif
