/* answer_labels.h - the words with which languages other than English introduce an answer, as parts
 * of a regular expression over the bytes of UTF-8. */
#ifndef SNAPMLA_EVALS_ANSWER_LABELS_H
/* clang-format off */
#define SNAPMLA_EVALS_ANSWER_LABELS_H

/* Nouns: "answer", and in some languages "correct option". */
#define ANSWER_NOUNS \
    "答案|答え|正解|回答|选项|選項|选择|選擇|选|選|正确的是|정답|답변|답|Antwort|Antwoord|Lösung|[Rr]ichtig|" \
    "[Rr]éponse|[Rr]espuesta|[Rr]esposta|[Rr]isposta|[Oo]pción|[Oo]pção|[Oo]pzione|" \
    "[Oo]tvet|Ответ|ответ|Відповідь|відповідь|الإجابة|الاجابة|الجواب|উত্তর|उत्तर|" \
    "[Jj]awaban|Đáp án|đáp án|Câu trả lời|câu trả lời|[Cc]evap|[Oo]dpowiedź|" \
    "[Jj]ibu|Ìdáhùn|ìdáhùn|คำตอบ"

/* Adjectives between the noun and the verb: "correct", "right". */
#define ANSWER_ADJECTIVES \
    "correct[ao]?|corret[ao]|corrett[ao]|correcte|exacte|juste|richtige|final|finale|" \
    "الصحيحة|الصحيح|đúng|benar|poprawna|prawidłowa|doğru|ที่ถูกต้อง"

/* Verbs and particles: "is". */
#define ANSWER_VERBS \
    "ist|lautet|est|es|é|è|is|adalah|yaitu|là|to|jest|ni|هي|هو|है|হল|হলো|" \
    "は|が|은|는|이|是|为|為|คือ"

/* Adverbs between the verb and the letter: "therefore". */
#define ANSWER_ADVERBS \
    "donc|also|daher|somit|por tanto|por lo tanto|portanto|quindi|dunque|следовательно"

/* "and" and "or" between two letters. */
#define ANSWER_OR_AND "(?:oder|und|ou|et|o|y|e)(?![a-z])|или|и|或|和|または|또는|hoặc|và"

/* Articles and nouns directly before the letter. */
#define ANSWER_ARTICLES \
    "die|der|das|la|el|le|l'|a|o|lettre|letra|lettera|option|Option|opción|opção|opzione|" \
    "вариант|буква|选项|選項|phương án"

/* clang-format on */

#endif
