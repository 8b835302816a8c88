// page.js - sorts, searches, copies and saves the tables of a report. Without it the page shows the
// same tables. The text must not contain the two characters that XML escapes, since the page is
// also XML.
'use strict';
(() => {
    const make = (tag, text, parent) => {
        const e = document.createElement(tag);
        e.textContent = text;
        parent.append(e);
        return e;
    };

    // The text of a cell. A number has an ASCII minus sign.
    const textOf = cell => {
        const text = cell.textContent.trim();
        return /^\u2212[\d.]/.test(text) ? '-' + text.slice(1) : text;
    };

    // The number at the beginning of a text, as in "12.5", "-0.3 %", "[1.0, 2.0]" and "8k", which is
    // 8 * 1024. NaN if the text does not begin with a number.
    const numberOf = text => {
        const m = /^[\[±~]?([-+]?[\d.]+(?:e[-+]?\d+)?)(k|M)?/.exec(text.replace(/\u2212/g, '-').replace(/^>/, ''));
        return m ? parseFloat(m[1]) * (m[2] === 'k' ? 1024 : m[2] === 'M' ? 1048576 : 1) : NaN;
    };

    // Empty cells and cells without a value come last in both directions.
    const isEmpty = text => text === '' || text === '-' || text === '–';

    const compare = (a, b, way) => {
        if (isEmpty(a) || isEmpty(b)) return isEmpty(a) - isEmpty(b);
        const x = numberOf(a), y = numberOf(b);
        if (!isNaN(x + y)) return way * (x - y);
        if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
        return way * a.localeCompare(b, 'en', {numeric: true});
    };

    // The heads of the columns, each after the head of its group.
    const headsOf = table => {
        const rows = [...table.tHead.rows], groups = [];
        if (rows.length > 1)
            for (const cell of rows[0].cells)
                groups.push(...Array(cell.colSpan).fill(cell.textContent.trim()));
        return [...rows[rows.length - 1].cells].map((cell, i) => ((groups[i] || '') + ' ' + cell.textContent).trim());
    };

    // The heads and the rows that the search has left, in the order on the page.
    const linesOf = table => [headsOf(table), ...[...table.tBodies[0].rows].filter(row => !row.hidden).map(row => [...row.cells].map(textOf))];

    // A text that a spreadsheet would take for a formula gets an apostrophe.
    const csvCell = text => {
        const formula = /^[=+@-]/.test(text) ? isNaN(Number(text)) : false;
        const safe = (formula ? "'" : '') + text;
        return /[",\n]/.test(safe) || formula ? '"' + safe.replace(/"/g, '""') + '"' : safe;
    };

    const copy = async text => {
        try {
            await navigator.clipboard.writeText(text);
            return true;
        } catch (e) {
            const area = make('textarea', text, document.body);
            area.select();
            const done = document.execCommand('copy');
            area.remove();
            return done;
        }
    };

    const save = (name, text) => {
        const link = document.createElement('a');
        link.href = URL.createObjectURL(new Blob(['\ufeff' + text], {type: 'text/csv;charset=utf-8'}));
        link.download = name;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    };

    const addTools = (table, rows, region) => {
        const tools = document.createElement('div');
        tools.className = 'tools';
        const search = make('input', '', tools);
        search.type = 'search';
        search.placeholder = 'Search';
        search.setAttribute('aria-label', 'Search in: ' + table.caption.textContent);
        const copyButton = make('button', 'Copy', tools), saveButton = make('button', 'Download CSV', tools);
        const status = make('span', '', tools);
        status.setAttribute('role', 'status');
        for (const button of [copyButton, saveButton]) {
            button.type = 'button';
            button.setAttribute('aria-label', button.textContent + ': ' + table.caption.textContent);
        }
        search.addEventListener('input', () => {
            const words = search.value.toLowerCase().split(/\s+/).filter(word => word);
            let shown = 0;
            for (const row of rows) {
                const text = [...row.cells].map(cell => cell.textContent).join(' ').toLowerCase();
                row.hidden = !words.every(word => text.includes(word));
                shown += row.hidden ? 0 : 1;
            }
            status.textContent = words.length ? `${shown} of ${rows.length} rows` : '';
        });
        copyButton.addEventListener('click', async () => {
            const done = await copy(linesOf(table).map(line => line.join('\t')).join('\n') + '\n');
            status.textContent = done ? 'copied' : 'the browser does not allow copying';
        });
        saveButton.addEventListener('click', () => save(table.id + '.csv', linesOf(table).map(line => line.map(csvCell).join(',')).join('\r\n') + '\r\n'));
        region.before(tools);
    };

    // A head becomes a button: ascending, then descending, then the original order.
    const addSorting = (table, rows) => {
        const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
        heads.forEach((head, column) => {
            const text = head.textContent;
            if (!text.trim()) return;
            head.textContent = '';
            const button = make('button', text, head);
            button.type = 'button';
            button.addEventListener('click', () => {
                const next = {ascending: 'descending', descending: ''}, was = head.getAttribute('aria-sort');
                const now = was ? next[was] : 'ascending', way = now === 'descending' ? -1 : 1;
                for (const other of heads) other.removeAttribute('aria-sort');
                if (now) head.setAttribute('aria-sort', now);
                const sorted = now ? rows.map(row => [textOf(row.cells[column]), row]).sort((a, b) => compare(a[0], b[0], way)).map(pair => pair[1]) : rows;
                table.tBodies[0].append(...sorted);
            });
        });
    };

    for (const region of document.querySelectorAll('.scroll')) {
        const table = region.querySelector('table'), rows = [...table.tBodies[0].rows];
        addTools(table, rows, region);
        addSorting(table, rows);
    }
})();
