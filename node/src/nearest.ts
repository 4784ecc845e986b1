/** @internal The one of `names` that `name` was probably meant to be: `one_file_system`, `Replace`, `thread`. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  const plain = (text: string) => text.replace(/[_-]/g, '').toLowerCase();
  const near = names.map((one) => ({ one, away: distance(plain(name), plain(one)) })).sort((a, b) => a.away - b.away)[0];
  return near !== undefined && near.away <= Math.max(2, near.one.length / 3) ? near.one : undefined;
}

/** How many letters to insert, remove or exchange (Levenshtein's distance). */
function distance(from: string, to: string): number {
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const exchanged = (last[column - 1] as number) + (from[row - 1] === to[column - 1] ? 0 : 1);
      next.push(Math.min(exchanged, (last[column] as number) + 1, (next[column - 1] as number) + 1));
    }
    last = next;
  }
  return last[to.length] as number;
}
