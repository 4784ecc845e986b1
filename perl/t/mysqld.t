use lib 't/lib';
use Shop qw(mariadbd mariadb);
use Test::Calve 'Test::mysqld';
use Test::More;

# As a suite has it that was written for Test::mysqld.
use Test::mysqld;

my $mysqld = Test::mysqld->new(my_cnf => { 'skip-networking' => '' }) or plan skip_all => $Test::mysqld::errstr;
my $socket = $mysqld->my_cnf->{socket};
ok -S $socket, 'the socket';
is $mysqld->dsn, "DBI:mysql:dbname=test;mysql_socket=$socket;user=root", 'dsn';
is $mysqld->dsn(dbname => 'mysql'), "DBI:mysql:dbname=mysql;mysql_socket=$socket;user=root", 'dsn with an argument';
my @client = ('mariadb', '--no-defaults', '-N', '-uroot', "--socket=$socket");
is Shop::said(@client, '-e', 'CREATE TABLE a (b INT); INSERT INTO a VALUES (7); SELECT b FROM a', 'test'), 7, 'the database test';
like $mysqld->read_log, qr/ready for connections|socket/, 'the log';

# Its data directory, as another suite has it from a server that was stopped.
system(qw(calve db template create -q full --engine mariadb -- mariadb test -e), 'CREATE TABLE c (d INT); INSERT INTO c VALUES (8)') == 0 or die;
my ($data) = Shop::said(qw(calve db template list --json)) =~ /"name": "full".*?"data_directory": "([^"]+)"/s;
for my $time (1, 2) {
    my $copy = Test::mysqld->new(copy_data_from => $data, my_cnf => { skip_networking => '' });
    my @there = ('mariadb', '--no-defaults', '-N', '-uroot', '--socket=' . $copy->my_cnf->{socket});
    is Shop::said(@there, '-e', 'SELECT d FROM c; DROP TABLE c', 'test'), 8, "copy_data_from, time $time";
}

my @two = Test::mysqld->start_mysqlds(2, my_cnf => { 'skip-networking' => '' });
isnt $two[0]->my_cnf->{socket}, $two[1]->my_cnf->{socket}, 'two servers';
Test::mysqld->stop_mysqlds(@two);
is Shop::running(), 1, 'stopped';

ok !eval { Test::mysqld->new(my_cnf => { 'character-set-server' => 'utf8' }); 1 }, 'an option of the server is refused';
like $@, qr/Calve does not set the option character-set-server of my_cnf/, 'by name';
ok !eval { Test::mysqld->new(magic => 1); 1 }, 'an argument that does not exist';
like $@, qr/the argument magic is unknown/, 'by name';
$mysqld->stop;
done_testing;
