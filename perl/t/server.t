use lib 't/lib';
use Shop qw(psql);
use Test::Calve;
use Test::More;

my $server = Test::Calve->new(template => 'shop');
my $count = 'SELECT count(*) FROM customers';
is Shop::psql($server->url, $count), 100, 'the server has what the template has';
my ($host) = $server->url =~ /host=([^&]+)/;
is $server->dsn, "DBI:Pg:dbname=postgres;host=$host;port=5432;user=postgres", 'dsn';
is $server->dsn(dbname => 'other', user => 'me'), "DBI:Pg:dbname=other;host=$host;port=5432;user=me", 'dsn with arguments';
is $server->environment->{DATABASE_URL}, $server->url, 'environment';

Shop::psql($server->url, 'DELETE FROM customers WHERE id > 10');
is Shop::psql($server->url, $count), 10, 'it can be written';
my ($url, $pid) = ($server->url, $server->pid);
$server->reset;
is $server->url, $url, 'the address stays';
isnt $server->pid, $pid, 'the process does not';
is Shop::psql($server->url, $count), 100, 'it is back';

Shop::psql($server->url, 'DELETE FROM customers WHERE id > 50');
$server->mark('half');
Shop::psql($server->url, 'DROP TABLE customers');
$server->reset(to => 'half');
is Shop::psql($server->url, $count), 50, 'it is back at its mark';
$server->reset;

my $other = Test::Calve->new({ template => 'shop' });
Shop::psql($other->url, 'DROP TABLE customers');
is Shop::psql($server->url, $count), 100, 'servers do not see one another';
is Shop::running(), 2, 'two servers';
undef $other;
is Shop::running(), 1, 'it ends with its object';

my $child = fork // die "fork: $!";
exit 0 if $child == 0;
waitpid $child, 0;
is Shop::psql($server->url, $count), 100, 'a child that ends leaves it';

# Somebody else has ended it.
system qw(calve db stop -q), $server->environment && Shop::said(qw(calve db list)) =~ /^(\S+)/ ? $1 : die;
$server->stop;
is $server->url, undef, 'it is stopped';
ok !eval { $server->dsn; 1 }, 'what has ended has no address';
like $@, qr/does not run/, 'and says so';

my $late = Test::Calve->new(template => 'shop', auto_start => 0);
is Shop::running(), 0, 'not started yet';
$late->start;
$late->start;
is Shop::running(), 1, 'started once';
ok eval { Test::Calve->new(template => 'none'); 1 } ? 0 : 1, 'a template that is not there';
like $@, qr/^Test::Calve: there is no template `none`\nhint: /, 'is named, with what to do';
done_testing;
