/* answer_labels.h - the words with which languages other than English state an answer, as parts of
 * a regular expression over the bytes of UTF-8. extract_stated() searches them. */
#ifndef SNAPMLA_EVALS_ANSWER_LABELS_H
/* clang-format off */
#define SNAPMLA_EVALS_ANSWER_LABELS_H

/* Nouns, and verbs such as "choose", that introduce an answer: "answer", "correct option". */
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

/* clang-format on */

#endif
